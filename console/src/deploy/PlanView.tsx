// The plan: what will happen, on which machines, and the price per hour.

import { Box, Group, Stack, Text } from "@mantine/core";
import { IconListCheck, IconServer2 } from "@tabler/icons-react";
import type { Schemas } from "../api/client";
import { hourOf, priceOf } from "../capacity/price";
import { componentTitle, type Manifest } from "../catalog/manifest";

export function PlanView({ plan, manifest }: { plan: Schemas["PlanView"]; manifest?: Manifest }) {
  const cost = hourOf(plan.hosts);
  return (
    <Box p="md" style={{ background: "var(--busy-wash)", borderRadius: 12 }} data-plan>
      <Stack gap="sm">
        <Group gap="xs" wrap="nowrap" align="flex-start">
          <IconListCheck size={19} color="var(--busy)" aria-hidden style={{ flex: "none", marginTop: 1 }} />
          <Text fw={600} size="sm">
            {plan.summary}
          </Text>
        </Group>
        <Stack gap={6}>
          {plan.hosts.map((host) => (
            <Group key={host.allocation_id} gap="xs" wrap="nowrap">
              <IconServer2 size={16} aria-hidden style={{ flex: "none" }} />
              <Text size="sm">
                <b>{host.node_name}</b>{" "}
                <Text span c="dimmed" inherit>
                  {host.address}
                </Text>{" "}
                {host.components.map((key) => componentTitle(manifest, key)).join(", ")}
                {host.currency && (
                  <Text span c="dimmed" inherit>
                    {" · "}
                    {priceOf({ price_micros_per_hour: host.price_micros_per_hour ?? 0, currency: host.currency })}
                  </Text>
                )}
              </Text>
            </Group>
          ))}
        </Stack>
        {cost && <Text size="sm">{cost}</Text>}
        {plan.warnings?.map((warning) => (
          <Text key={warning} size="sm" c="var(--warn)">
            {warning}
          </Text>
        ))}
      </Stack>
    </Box>
  );
}
