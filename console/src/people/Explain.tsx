// One question at a time: may this person do that here, and why.

import { Autocomplete, Button, Card, Group, Select, Stack, Text } from "@mantine/core";
import { IconCircleCheck, IconCircleX } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";
import { api, queries } from "../api/client";
import { Shown } from "../parts/Page";
import { sentence } from "../parts/tone";

export type Somewhere = { project_id: string } | { tenant_id: string };

interface Props {
  people: { id: string; name: string }[];
  where: Somewhere;
}

export function Explain({ people, where }: Props) {
  const [search, setSearch] = useSearchParams();
  const [who, setWho] = useState(search.get("who"));
  const [key, setKey] = useState(search.get("may") ?? "");
  const mine = queries.useQuery("get", "/v1/whoami/permissions", { params: { query: where } }, { staleTime: 60_000 });
  const options = [...new Map(people.map((one) => [one.id, one.name]))].map(([value, label]) => ({ value, label }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const asked = new URLSearchParams(search);
    asked.set("who", who ?? "");
    asked.set("may", key.trim());
    setSearch(asked, { replace: true });
  };
  return (
    <Card>
      <Text component="h2" fw={650} m={0} mb="sm">
        May they?
      </Text>
      <form onSubmit={submit}>
        <Group align="flex-end">
          <Select label="Who" data={options} value={who} onChange={setWho} searchable w={{ base: "100%", sm: 240 }} />
          <Autocomplete
            label="Permission"
            placeholder="apps.instance.create"
            data={mine.data?.permissions ?? []}
            limit={12}
            value={key}
            onChange={setKey}
            w={{ base: "100%", sm: 300 }}
          />
          <Button type="submit" disabled={!who || !key.trim()}>
            Explain
          </Button>
        </Group>
      </form>
      {search.get("who") && search.get("may") && (
        <Answer who={search.get("who") ?? ""} permission={search.get("may") ?? ""} where={where} />
      )}
    </Card>
  );
}

function Answer({ who, permission, where }: { who: string; permission: string; where: Somewhere }) {
  const query = { permission, principal_id: who };
  const asked = useQuery({
    queryKey: ["get", "/explain", where, query],
    queryFn: async () => {
      const { data } = await ("project_id" in where
        ? api.GET("/v1/projects/{project_id}/explain", { params: { path: where, query } })
        : api.GET("/v1/tenants/{tenant_id}/explain", { params: { path: where, query } }));
      if (!data) throw new Error("The platform gave no answer.");
      return data;
    },
  });
  return (
    <Stack gap="xs" mt="md">
      <Shown of={asked} lines={1}>
        {(told) => (
          <Group gap="sm" wrap="nowrap" align="flex-start" role="status">
            {told.allowed ? (
              <IconCircleCheck size={22} color="var(--good)" aria-hidden style={{ flex: "none" }} />
            ) : (
              <IconCircleX size={22} color="var(--bad)" aria-hidden style={{ flex: "none" }} />
            )}
            <div>
              <Text fw={600}>
                {told.principal_name} {told.allowed ? "may" : "may not"}.
              </Text>
              <Text size="sm">{sentence(told.reason)}</Text>
              {!told.allowed && told.roles_that_hold_it.length > 0 && (
                <Text size="sm" c="dimmed">
                  Roles that hold it: {told.roles_that_hold_it.join(", ")}.
                </Text>
              )}
            </div>
          </Group>
        )}
      </Shown>
    </Stack>
  );
}
