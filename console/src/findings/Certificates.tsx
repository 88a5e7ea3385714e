// The cleanup checks of each machine that an instance or a member left.

import { Box, Card, Group, Stack, Text } from "@mantine/core";
import { IconCertificate, IconCircleCheck, IconCircleX } from "@tabler/icons-react";
import { queries, type Schemas } from "../api/client";
import { Copy } from "../parts/Copy";
import { Facts } from "../parts/Facts";
import { displayName } from "../parts/names";
import { Time } from "../parts/Time";

type Certificate = Schemas["DepartureCertificateView"];
const LOOK_AGAIN_MS = 3000;

export function Certificates({
  projectId,
  of,
}: {
  projectId: string;
  of: { operation_id?: string; instance_id?: string };
}) {
  const found = queries.useQuery(
    "get",
    "/v1/projects/{project_id}/departure-certificates",
    { params: { path: { project_id: projectId }, query: { ...of, limit: 200 } } },
    { refetchInterval: ({ state }) => (state.data?.items.some(open) ? LOOK_AGAIN_MS : false) },
  );
  const items = found.data?.items ?? [];
  if (!items.length) return null;
  return (
    <Card data-certificates>
      <Text component="h2" fw={650} m={0} mb={4}>
        Departure certificates
      </Text>
      <Text size="sm" c="dimmed" mb="md">
        The checks made on each machine after cleanup. Kept with the audit trail.
      </Text>
      <Stack gap="md">
        {items.map((one) => (
          <One key={one.id} one={one} />
        ))}
      </Stack>
    </Card>
  );
}

function One({ one }: { one: Certificate }) {
  const { statement } = one;
  const Icon = open(one) ? IconCertificate : IconCircleCheck;
  return (
    <details>
      <summary>
        <Text span size="sm">
          <Icon
            size={17}
            color={open(one) ? "var(--busy)" : "var(--good)"}
            aria-hidden
            style={{ verticalAlign: "text-bottom", marginRight: 6 }}
          />
          <b>{statement.host.name}</b> is clean: {statement.checks.length} checks passed. {access(one)}
        </Text>
      </summary>
      <Box pt="sm" pl={28}>
        <Stack gap={6} mb="sm">
          {statement.checks.map((check) => (
            <Group key={check.check} gap={8} wrap="nowrap" align="flex-start">
              {check.ok ? (
                <IconCircleCheck
                  size={16}
                  color="var(--good)"
                  aria-label="passed"
                  style={{ flex: "none", marginTop: 2 }}
                />
              ) : (
                <IconCircleX size={16} color="var(--bad)" aria-label="failed" style={{ flex: "none", marginTop: 2 }} />
              )}
              <Text size="sm" style={{ minWidth: 0, overflowWrap: "anywhere" }}>
                <b>{displayName(check.check)}</b> {check.detail}
              </Text>
            </Group>
          ))}
        </Stack>
        <Facts
          rows={[
            ["Issued", <Time key="at" at={one.issued_at} />],
            ["Machine", `${statement.host.name} (${statement.host.address})`],
            [
              "Digest",
              <Group key="digest" gap={4} wrap="nowrap">
                <span className="mono">{one.digest}</span>
                <Copy value={JSON.stringify(one, null, 2)} what="the certificate as JSON" />
              </Group>,
            ],
          ]}
        />
      </Box>
    </details>
  );
}

function open(one: Certificate): boolean {
  return one.access.open_grants + one.access.grants_not_yet_refused > 0;
}

function access(one: Certificate): string {
  if (one.access.open_grants) return "Access for this operation is being revoked.";
  if (one.access.grants_not_yet_refused) return "Access revoked; waiting for the machine to confirm.";
  return "Access revoked.";
}
