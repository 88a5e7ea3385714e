// The hardware types on offer and their price per hour.

import { Group, NumberInput, Table, Text, TextInput } from "@mantine/core";
import { IconCpu } from "@tabler/icons-react";
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { Asking } from "../parts/Asking";
import { ACTIONS, Listed } from "../parts/Listed";
import { Empty, Page, Shown } from "../parts/Page";
import { Begin } from "../session/Refused";
import { DeleteOffer } from "./DeleteOffer";
import { hardwareOf, microsOf, priceOf } from "./price";

export function SkusPage() {
  const [making, make] = useState(false);
  const found = usePages("/v1/skus", [], (cursor) => api.GET("/v1/skus", { params: { query: { limit: 50, cursor } } }));
  return (
    <Page
      title="SKUs"
      about="Hardware types. A machine gets its SKU when it is enrolled. Quotas, policies and prices refer to SKUs."
      actions={
        <Begin permission="capacity.sku.create" place={{}} act={() => make(true)}>
          Add SKU
        </Begin>
      }
    >
      <Shown of={found}>
        {(items) =>
          items.length ? (
            <Listed
              label="SKUs"
              columns={["Name", ["Hardware", "sm"], "Price per hour", ACTIONS]}
              turning={found.turning}
            >
              {items.map((one) => (
                <Row key={one.name} one={one} />
              ))}
            </Listed>
          ) : (
            <Empty icon={<IconCpu size={32} />} title="No SKUs yet">
              Add an SKU before you enrol machines.
            </Empty>
          )
        }
      </Shown>
      {making && <NewSku close={() => make(false)} />}
    </Page>
  );
}

function Row({ one }: { one: Schemas["SkuView"] }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600} className="mono">
          {one.name}
        </Text>
        <Text size="xs" c="dimmed" hiddenFrom="sm">
          {hardwareOf(one)}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Text size="sm">{hardwareOf(one)}</Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm" style={{ whiteSpace: "nowrap" }}>
          {priceOf(one)}
        </Text>
      </Table.Td>
      <Table.Td ta="right">
        <DeleteOffer of="skus" name={one.name} />
      </Table.Td>
    </Table.Tr>
  );
}

function NewSku({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [model, setModel] = useState("");
  const [gpus, setGpus] = useState<number | string>(8);
  const [cpus, setCpus] = useState<number | string>(64);
  const [memory, setMemory] = useState<number | string>(512);
  const [price, setPrice] = useState<number | string>(0);
  const [currency, setCurrency] = useState("EUR");
  const numbers = [gpus, cpus, memory, price];
  return (
    <Asking
      title="Add SKU"
      verb="Add SKU"
      ready={Boolean(name.trim() && model.trim() && /^[A-Z]{3}$/.test(currency)) && !numbers.includes("")}
      act={() =>
        api.POST("/v1/skus", {
          body: {
            name: name.trim(),
            gpu_model: model.trim(),
            gpu_count: Number(gpus),
            cpus: Number(cpus),
            memory_mb: Number(memory) * 1024,
            price_micros_per_hour: microsOf(Number(price)),
            currency,
          },
        })
      }
      close={close}
    >
      <TextInput
        label="Name"
        description="Used in commands and policies, for example h100-8. An SKU can't be changed later."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      <Group grow align="flex-start">
        <TextInput label="GPU model" value={model} onChange={(event) => setModel(event.currentTarget.value)} />
        <NumberInput label="GPUs" min={0} max={64} allowDecimal={false} value={gpus} onChange={setGpus} />
      </Group>
      <Group grow align="flex-start">
        <NumberInput label="CPUs" min={1} max={4096} allowDecimal={false} value={cpus} onChange={setCpus} />
        <NumberInput label="Memory (GiB)" min={1} allowDecimal={false} value={memory} onChange={setMemory} />
      </Group>
      <Group grow align="flex-start">
        <NumberInput label="Price per hour" min={0} decimalScale={6} value={price} onChange={setPrice} />
        <TextInput
          label="Currency"
          value={currency}
          onChange={(event) => setCurrency(event.currentTarget.value.toUpperCase())}
        />
      </Group>
    </Asking>
  );
}
