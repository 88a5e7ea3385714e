// The regions machines can be in. Platform administrators add regions and delete empty ones.

import { Table, Text, TextInput } from "@mantine/core";
import { IconMapPin } from "@tabler/icons-react";
import { useState } from "react";
import { api } from "../api/client";
import { usePages } from "../api/usePages";
import { Asking } from "../parts/Asking";
import { ACTIONS, Listed } from "../parts/Listed";
import { Empty, Page, Shown } from "../parts/Page";
import { Time } from "../parts/Time";
import { Begin } from "../session/Refused";
import { DeleteOffer } from "./DeleteOffer";

export function RegionsPage() {
  const [making, make] = useState(false);
  const found = usePages("/v1/regions", [], (cursor) =>
    api.GET("/v1/regions", { params: { query: { limit: 50, cursor } } }),
  );
  return (
    <Page
      title="Regions"
      about="Locations of machines. A machine gets its region when it is enrolled. Policies can restrict regions."
      actions={
        <Begin permission="capacity.region.create" place={{}} act={() => make(true)}>
          Add region
        </Begin>
      }
    >
      <Shown of={found}>
        {(items) =>
          items.length ? (
            <Listed label="Regions" columns={["Name", "Title", ["Added", "sm"], ACTIONS]} turning={found.turning}>
              {items.map((one) => (
                <Table.Tr key={one.name}>
                  <Table.Td>
                    <Text size="sm" fw={600} className="mono">
                      {one.name}
                    </Text>
                  </Table.Td>
                  <Table.Td>
                    <Text size="sm">{one.title}</Text>
                  </Table.Td>
                  <Table.Td visibleFrom="sm">
                    <Text size="sm" c="dimmed" component="span">
                      <Time at={one.created_at} />
                    </Text>
                  </Table.Td>
                  <Table.Td ta="right">
                    <DeleteOffer of="regions" name={one.name} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Listed>
          ) : (
            <Empty icon={<IconMapPin size={32} />} title="No regions yet">
              Add a region before you enrol machines.
            </Empty>
          )
        }
      </Shown>
      {making && <NewRegion close={() => make(false)} />}
    </Page>
  );
}

function NewRegion({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [title, setTitle] = useState("");
  return (
    <Asking
      title="Add region"
      verb="Add region"
      ready={Boolean(name.trim() && title.trim())}
      act={() => api.POST("/v1/regions", { body: { name: name.trim(), title: title.trim() } })}
      close={close}
    >
      <TextInput
        label="Name"
        description="Used in commands and policies, for example eu-west. Can't be changed later."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      <TextInput
        label="Title"
        description="Display name, for example Dublin."
        value={title}
        onChange={(event) => setTitle(event.currentTarget.value)}
      />
    </Asking>
  );
}
