// Naming the one service account whose controller may work on a new instance; most people name none.

import { Card, Select } from "@mantine/core";
import { api, type Schemas } from "../api/client";
import { useEvery } from "../api/usePages";
import { useMay } from "../session/session";

const WORKS = "app_operator"; // the role that works on operations

interface Props {
  projectId: string;
  chosen: string | undefined;
  choose: (id: string | undefined) => void;
}

export function OperatorPicker({ projectId, chosen, choose }: Props) {
  const path = { project_id: projectId };
  const may = useMay(path);
  const accounts = useEvery(
    "/service-accounts",
    path,
    (cursor) =>
      api.GET("/v1/projects/{project_id}/service-accounts", { params: { path, query: { limit: 100, cursor } } }),
    may("iam.service_account.read"),
  );
  if (!accounts.data?.length) return null; // nobody to choose, or not for this person to see
  return (
    <Card>
      <Select
        label="Operated by"
        description="Optional. Only this program's controller then works on the instance, for as long as the instance is there; if it is disabled or deleted, any controller of the app may again. Nobody named: any may from the start."
        placeholder="Any controller of the app"
        clearable
        searchable
        data={accounts.data.map(optionOf)}
        value={chosen ?? null}
        onChange={(id) => choose(id ?? undefined)}
      />
    </Card>
  );
}

/** Who cannot operate is shown, and why. */
function optionOf({ id, name, disabled, roles }: Schemas["ServiceAccountView"]) {
  const why = disabled ? "disabled" : roles.includes(WORKS) ? "" : `not ${WORKS}`;
  return { value: id, label: why ? `${name} (${why})` : name, disabled: Boolean(why) };
}
