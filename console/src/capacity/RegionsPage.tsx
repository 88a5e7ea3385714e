// Where machines can stand. Everybody reads them; whoever runs the platform adds them and takes empty ones away.

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
  const found = usePages("/regions", [], (cursor) =>
    api.GET("/v1/regions", { params: { query: { limit: 50, cursor } } }),
  );
  return (
    <Page
      title="Regions"
      about="Where machines can stand. A machine names its region when it is enrolled; policies can narrow to some."
      actions={
        <Begin permission="capacity.region.create" place={{}} act={() => make(true)}>
          New region
        </Begin>
      }
    >
      <Shown of={found}>
        {(items) =>
          items.length ? (
            <Listed label="Regions" columns={["Name", "Title", ["Since", "sm"], ACTIONS]} turning={found.turning}>
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
            <Empty icon={<IconMapPin size={32} />} title="No region yet">
              Without one no machine can be enrolled.
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
      title="New region"
      verb="Add it"
      ready={Boolean(name.trim() && title.trim())}
      act={() => api.POST("/v1/regions", { body: { name: name.trim(), title: title.trim() } })}
      close={close}
    >
      <TextInput
        label="Name"
        description="For commands and policies, such as eu-west. It stays."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      <TextInput
        label="Title"
        description="For people, such as Dublin."
        value={title}
        onChange={(event) => setTitle(event.currentTarget.value)}
      />
    </Asking>
  );
}
