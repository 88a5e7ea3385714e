// A button one may not press: it stays visible, and says why and who could help.

import { Button, Popover, Stack, Text } from "@mantine/core";
import { IconLock, IconPlus } from "@tabler/icons-react";
import { queries } from "../api/client";
import { sentence } from "../parts/tone";
import { useMay } from "./session";

interface Place {
  project_id?: string;
  tenant_id?: string;
}

/** A button that begins something new, for those who may; the others read why not. */
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
  const roles = why.data?.roles_that_hold_it.filter((role) => role !== "app_operator") ?? [];
  return (
    <Stack gap={6}>
      <Text size="sm" fw={600}>
        You may not do this here.
      </Text>
      <Text size="sm">
        It needs <span className="mono">{permission}</span>. {why.data ? sentence(why.data.reason) : "…"}
      </Text>
      {roles.length > 0 && (
        <Text size="sm" c="dimmed">
          Ask for one of the roles that hold it: {roles.join(", ")}.
        </Text>
      )}
    </Stack>
  );
}
