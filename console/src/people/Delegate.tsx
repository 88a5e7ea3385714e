// Delegates some of the own permissions to a service account for a limited time.

import { MultiSelect, Select, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, queries } from "../api/client";
import { useEvery } from "../api/usePages";
import { usePlace, useProjects } from "../app/place";
import { Asking } from "../parts/Asking";
import { useMay } from "../session/session";

const ENDS = [
  ["3600", "1 hour"],
  ["86400", "1 day"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
  ["7776000", "90 days"],
] as const;
// The API refuses to delegate these, so they are not offered.
const KEPT = /^(iam|platform|identity|tenancy\.(user|identity_provider|break_glass))\.|^tenancy\.project\.create$/;

export function Delegate({ projectId, close }: { projectId: string; close: () => void }) {
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
      title="Delegate"
      size="lg"
      verb="Delegate"
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
        The service account acts on your behalf in this project. It never has more permissions than you.
      </Text>
      {projects.length > 1 && (
        <Select
          label="Account project"
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
        label="Service account"
        searchable
        data={accounts.map(({ id, name }) => ({ value: id, label: name }))}
        value={who}
        onChange={setWho}
      />
      <MultiSelect
        label="Permissions"
        description="You can delegate permissions that you have in this project."
        searchable
        limit={50}
        data={mine.data?.permissions.filter((key) => !KEPT.test(key)) ?? []}
        value={keys}
        onChange={setKeys}
      />
      <Select
        label="Expires after"
        data={ENDS.map(([value, label]) => ({ value, label }))}
        value={ends}
        onChange={(chosen) => chosen && setEnds(chosen)}
        allowDeselect={false}
      />
      <TextInput
        label="Reason"
        description="Shown in the list of delegations."
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
    "/v1/projects/{project_id}/service-accounts",
    path,
    (cursor) =>
      api.GET("/v1/projects/{project_id}/service-accounts", { params: { path, query: { limit: 100, cursor } } }),
    may("iam.service_account.read"),
  );
  return found.data?.filter((one) => !one.disabled) ?? [];
}
