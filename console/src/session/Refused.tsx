// A button without permission: it stays visible, and explains which role is needed.

import { Button, Popover, Stack, Text } from "@mantine/core";
import { IconLock, IconPlus } from "@tabler/icons-react";
import { queries } from "../api/client";
import { sentence } from "../parts/tone";
import { useNeeded } from "./roles";
import { useMay } from "./session";

interface Place {
  project_id?: string;
  tenant_id?: string;
}

/** A button that creates something; without permission it explains why not. */
export function Begin(props: { permission: string; place: Place; act: () => void; children: string }) {
  const { permission, place, act, children } = props;
  const may = useMay(place);
  if (!may(permission)) {
    return (
      <Refused permission={permission} place={place}>
        {children}
      </Refused>
    );
  }
  return (
    <Button leftSection={<IconPlus size={17} />} onClick={act}>
      {children}
    </Button>
  );
}

export function Refused({ permission, place, children }: { permission: string; place: Place; children: string }) {
  return (
    <Popover width={320} withArrow shadow="md" position="bottom-end">
      <Popover.Target>
        <Button variant="default" leftSection={<IconLock size={15} />} aria-label={`${children}: why not?`}>
          {children}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <WhyNot permission={permission} place={place} />
      </Popover.Dropdown>
    </Popover>
  );
}

export function WhyNot({ permission, place }: { permission: string; place: Place }) {
  const query = { permission, ...place };
  const why = queries.useQuery("get", "/v1/whoami/explain", { params: { query } });
  const needed = useNeeded(place.project_id);
  return (
    <Stack gap={6}>
      <Text size="sm" fw={600}>
        Not allowed
      </Text>
      <Text size="sm">{needed(permission)}</Text>
      {why.data && (
        <Text size="xs" c="dimmed">
          {sentence(why.data.reason)}
        </Text>
      )}
    </Stack>
  );
}
