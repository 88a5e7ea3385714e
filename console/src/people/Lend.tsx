// Lending a program what one may do oneself, for a time.

import { MultiSelect, Select, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, queries } from "../api/client";
import { useEvery } from "../api/usePages";
import { usePlace, useProjects } from "../app/place";
import { Asking } from "../parts/Asking";
import { useMay } from "../session/session";

const ENDS = [
  ["3600", "In an hour"],
  ["86400", "In a day"],
  ["604800", "In a week"],
  ["2592000", "In 30 days"],
  ["7776000", "In 90 days, the longest"],
] as const;
// Who may do what, and being oneself, is not lent; the platform refuses it, so it is not offered either.
const KEPT = /^(iam|platform|identity|tenancy\.(user|identity_provider|break_glass))\.|^tenancy\.project\.create$/;

export function Lend({ projectId, close }: { projectId: string; close: () => void }) {
  const [home, setHome] = useState(projectId);
  const [who, setWho] = useState<string | null>(null);
  const [keys, setKeys] = useState<string[]>([]);
  const [ends, setEnds] = useState<string>("86400");
  const [reason, setReason] = useState("");
  const { tenant } = usePlace();
  const projects = useProjects(tenant?.id);
  const accounts = useAccounts(home);
  const mine = queries.useQuery("get", "/v1/whoami/permissions", { params: { query: { project_id: projectId } } });
  return (
    <Asking
      title="Lend permissions"
      size="lg"
      verb="Lend them"
      ready={Boolean(who && keys.length && reason.trim().length >= 3)}
      act={() =>
        api.POST("/v1/projects/{project_id}/delegations", {
          params: { path: { project_id: projectId } },
          body: { grantee_id: who ?? "", permissions: keys, reason: reason.trim(), expires_in_s: Number(ends) },
        })
      }
      close={close}
    >
      <Text size="sm">
        The program acts on your behalf in this project. It never may more than you: what you lose, it loses.
      </Text>
      {projects.length > 1 && (
        <Select
          label="Project of the program"
          data={projects.map(({ id, name }) => ({ value: id, label: name }))}
          value={home}
          onChange={(chosen) => {
            setHome(chosen ?? projectId);
            setWho(null);
          }}
          allowDeselect={false}
        />
      )}
      <Select
        label="Program"
        description="A service account."
        searchable
        data={accounts.map(({ id, name }) => ({ value: id, label: name }))}
        value={who}
        onChange={setWho}
      />
      <MultiSelect
        label="Permissions"
        description="Of those you hold here."
        searchable
        limit={50}
        data={mine.data?.permissions.filter((key) => !KEPT.test(key)) ?? []}
        value={keys}
        onChange={setKeys}
      />
      <Select
        label="Ends"
        data={ENDS.map(([value, label]) => ({ value, label }))}
        value={ends}
        onChange={(chosen) => chosen && setEnds(chosen)}
        allowDeselect={false}
      />
      <TextInput
        label="Why"
        description="Everybody who looks at it reads it."
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Asking>
  );
}

function useAccounts(project_id: string) {
  const may = useMay({ project_id });
  const path = { project_id };
  const found = useEvery(
    "/service-accounts",
    path,
    (cursor) =>
      api.GET("/v1/projects/{project_id}/service-accounts", { params: { path, query: { limit: 100, cursor } } }),
    may("iam.service_account.read"),
  );
  return found.data?.filter((one) => !one.disabled) ?? [];
}
