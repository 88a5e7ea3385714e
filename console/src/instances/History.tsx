// Finished operations and removed members.

import { Stack } from "@mantine/core";
import type { Schemas } from "../api/client";
import type { Manifest } from "../catalog/manifest";
import { OperationsList } from "../operations/OperationsList";
import { MembersTable } from "./MembersTable";

export function History({ instance, manifest }: { instance: Schemas["InstanceView"]; manifest: Manifest | undefined }) {
  return (
    <Stack gap="lg">
      <OperationsList projectId={instance.project_id} filter={{ instance_id: instance.id, history: true }}>
        <MembersTable instance={instance} manifest={manifest} history />
      </OperationsList>
    </Stack>
  );
}
