// The access check: is a person or service account allowed to do something here, and why.

import { Autocomplete, Button, Card, Group, Select, Stack, Text } from "@mantine/core";
import { IconCircleCheck, IconCircleX } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";
import { api, queries } from "../api/client";
import { roleName } from "../parts/names";
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
        Check access
      </Text>
      <form onSubmit={submit}>
        <Group align="flex-end">
          <Select label="Name" data={options} value={who} onChange={setWho} searchable w={{ base: "100%", sm: 240 }} />
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
            Check
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
    queryKey: [
      "get",
      "project_id" in where ? "/v1/projects/{project_id}/explain" : "/v1/tenants/{tenant_id}/explain",
      where,
      query,
    ],
    queryFn: async () => {
      const { data } = await ("project_id" in where
        ? api.GET("/v1/projects/{project_id}/explain", { params: { path: where, query } })
        : api.GET("/v1/tenants/{tenant_id}/explain", { params: { path: where, query } }));
      if (!data) throw new Error("The server returned no answer.");
      return data;
    },
  });
  return (
    <Stack gap="xs" mt="md">
      <Shown of={asked} lines={1}>
        {(answer) => (
          <Group gap="sm" wrap="nowrap" align="flex-start" role="status">
            {answer.allowed ? (
              <IconCircleCheck size={22} color="var(--good)" aria-hidden style={{ flex: "none" }} />
            ) : (
              <IconCircleX size={22} color="var(--bad)" aria-hidden style={{ flex: "none" }} />
            )}
            <div>
              <Text fw={600}>
                {answer.principal_name}: {answer.allowed ? "allowed" : "not allowed"}.
              </Text>
              <Text size="sm">{sentence(answer.reason)}</Text>
              {!answer.allowed && answer.roles_that_hold_it.length > 0 && (
                <Text size="sm" c="dimmed">
                  Roles with this permission: {answer.roles_that_hold_it.map(roleName).join(", ")}.
                </Text>
              )}
            </div>
          </Group>
        )}
      </Shown>
    </Stack>
  );
}
