// Restricts the operations of a new instance to one service account. Optional.

import { Card, Select } from "@mantine/core";
import { api, type Schemas } from "../api/client";
import { useEvery } from "../api/usePages";
import { roleName } from "../parts/names";
import { useMay } from "../session/session";

const WORKS = "app_operator"; // the role that carries out operations

interface Props {
  projectId: string;
  chosen: string | undefined;
  choose: (id: string | undefined) => void;
}

export function OperatorPicker({ projectId, chosen, choose }: Props) {
  const path = { project_id: projectId };
  const may = useMay(path);
  const accounts = useEvery(
    "/v1/projects/{project_id}/service-accounts",
    path,
    (cursor) =>
      api.GET("/v1/projects/{project_id}/service-accounts", { params: { path, query: { limit: 100, cursor } } }),
    may("iam.service_account.read"),
  );
  if (!accounts.data?.length) return null; // no service accounts, or the user may not read them
  return (
    <Card>
      <Select
        label="Operator"
        description="Optional. Only this service account works on the instance. If it is disabled or deleted, any operator of the app can."
        placeholder="Any operator of the app"
        clearable
        searchable
        data={accounts.data.map(optionOf)}
        value={chosen ?? null}
        onChange={(id) => choose(id ?? undefined)}
      />
    </Card>
  );
}

/** Accounts that cannot operate are shown with the reason. */
function optionOf({ id, name, disabled, roles }: Schemas["ServiceAccountView"]) {
  const why = disabled ? "disabled" : roles.includes(WORKS) ? "" : `not an ${roleName(WORKS)}`;
  return { value: id, label: why ? `${name} (${why})` : name, disabled: Boolean(why) };
}
