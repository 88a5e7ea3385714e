// The kinds of machines there are, and what an hour of one costs.

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
import { madeOf, microsOf, priceOf } from "./price";

export function SkusPage() {
  const [making, make] = useState(false);
  const found = usePages("/skus", [], (cursor) => api.GET("/v1/skus", { params: { query: { limit: 50, cursor } } }));
  return (
    <Page
      title="SKUs"
      about="The kinds of machines there are. A machine names its kind when it is enrolled; quotas, policies and prices go by it."
      actions={
        <Begin permission="capacity.sku.create" place={{}} act={() => make(true)}>
          New SKU
        </Begin>
      }
    >
      <Shown of={found}>
        {(items) =>
          items.length ? (
            <Listed label="SKUs" columns={["Name", ["Made of", "sm"], "An hour", ACTIONS]} turning={found.turning}>
              {items.map((one) => (
                <Row key={one.name} one={one} />
              ))}
            </Listed>
          ) : (
            <Empty icon={<IconCpu size={32} />} title="No SKU yet">
              Without one no machine can be enrolled.
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
          {madeOf(one)}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Text size="sm">{madeOf(one)}</Text>
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
      title="New SKU"
      verb="Add it"
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
        description="For commands and policies, such as h100-8. It stays, and so does everything here."
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
        <NumberInput label="Memory in GiB" min={1} allowDecimal={false} value={memory} onChange={setMemory} />
      </Group>
      <Group grow align="flex-start">
        <NumberInput label="Price of an hour" min={0} decimalScale={6} value={price} onChange={setPrice} />
        <TextInput
          label="Currency"
          value={currency}
          onChange={(event) => setCurrency(event.currentTarget.value.toUpperCase())}
        />
      </Group>
    </Asking>
  );
}
