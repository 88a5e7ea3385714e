// The policies of one level, with edit and remove.

import { Button, Card, Group, Stack, Text } from "@mantine/core";
import { IconShieldOff } from "@tabler/icons-react";
import { useState } from "react";
import { usePages } from "../api/usePages";
import { Confirm } from "../parts/Confirm";
import { Facts } from "../parts/Facts";
import { Empty, Pager, Shown } from "../parts/Page";
import { Time } from "../parts/Time";
import { Begin } from "../session/Refused";
import { useMay } from "../session/session";
import { fieldTitle, ruleWords } from "./fields";
import { LEVELS, type Level, type Policy, seen } from "./levels";
import { PolicyDialog } from "./PolicyDialog";

interface Where {
  level: Level;
  id: string;
}

export function placeOf({ level, id }: Where): { project_id?: string; tenant_id?: string } {
  return level === "platform" ? {} : level === "tenant" ? { tenant_id: id } : { project_id: id };
}

export function Declared({ level, id }: Where) {
  const found = usePages(LEVELS[level].path, [id], (cursor) => LEVELS[level].list(id, cursor));
  return (
    <Shown of={found}>
      {(items) =>
        items.length ? (
          <Stack>
            {items.map((one) => (
              <One key={one.id} policy={one} level={level} id={id} />
            ))}
            <Pager of={found.turning} />
          </Stack>
        ) : (
          <Empty icon={<IconShieldOff size={32} />} title="No policies yet">
            Policies of other levels may still apply.
          </Empty>
        )
      }
    </Shown>
  );
}

export function NewPolicy({ level, id }: Where) {
  const [making, make] = useState(false);
  return (
    <>
      <Begin permission={`policy.${level}.set`} place={placeOf({ level, id })} act={() => make(true)}>
        Create policy
      </Begin>
      {making && <PolicyDialog level={level} id={id} policy={null} close={() => make(false)} />}
    </>
  );
}

function One({ policy, level, id }: Where & { policy: Policy }) {
  const [asked, ask] = useState<"change" | "remove" | null>(null);
  const may = useMay(placeOf({ level, id }));
  const rules = Object.entries(policy.rules ?? {}) as [string, { only?: string[]; deny?: string[] }][];
  const opened = (policy.enables?.platform_managed as string[] | undefined) ?? [];
  return (
    <Card>
      <Group justify="space-between" align="flex-start" mb="xs">
        <div>
          <Text fw={650} component="h2" m={0}>
            {policy.name}
          </Text>
          <Text size="sm" c="dimmed" component="div">
            {policy.reason || "No reason"} · updated <Time at={policy.updated_at} />
          </Text>
        </div>
        <Group gap="xs">
          {may(`policy.${level}.set`) && (
            <Button size="xs" variant="default" onClick={() => ask("change")} aria-label={`Edit ${policy.name}`}>
              Edit
            </Button>
          )}
          {may(`policy.${level}.remove`) && (
            <Button size="xs" variant="default" onClick={() => ask("remove")} aria-label={`Remove ${policy.name}`}>
              Remove
            </Button>
          )}
        </Group>
      </Group>
      {policy.readable ? (
        <Facts
          rows={[
            ...rules.map(([field, rule]): [string, string] => [fieldTitle(field), ruleWords(rule)]),
            ...(opened.length ? ([["Platform-managed apps", opened.join(", ")]] as [string, string][]) : []),
          ]}
        />
      ) : (
        <Text size="sm" c="var(--bad)">
          This policy is invalid and therefore denies everything. Edit or remove it.
        </Text>
      )}
      {asked === "change" && <PolicyDialog level={level} id={id} policy={policy} close={() => ask(null)} />}
      {asked === "remove" && (
        <Confirm
          title={`Remove ${policy.name}`}
          impact={`Its restrictions no longer apply to ${LEVELS[level].reaches}.`}
          verb="Remove"
          danger
          name={policy.name}
          close={() => ask(null)}
          act={() => LEVELS[level].remove(id, policy.name, seen(policy))}
        />
      )}
    </Card>
  );
}
