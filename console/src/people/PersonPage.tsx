// One person: whether they can sign in, what they hold and where, and what they did.

import { Anchor, Button, Group, Stack, Table, Text } from "@mantine/core";
import { IconUserOff } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { api } from "../api/client";
import { Confirm } from "../parts/Confirm";
import { Copy } from "../parts/Copy";
import { Label } from "../parts/Label";
import { ACTIONS, Listed } from "../parts/Listed";
import { Empty, Page, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { Begin, Refused } from "../session/Refused";
import { useMay, useMe } from "../session/session";
import { GiveRole } from "./GiveRole";
import { TakeRole } from "./TakeRole";
import { type Person, useBindings, usePeople, usePlaceOf } from "./who";

const ONE = "/v1/tenants/{tenant_id}/users/{user_id}" as const;

export function PersonPage() {
  const { tenantId = "", userId = "" } = useParams();
  const people = usePeople(tenantId);
  const one = people.data?.find(({ id }) => id === userId);
  const crumb = (
    <Anchor component={Link} to={`/tenants/${tenantId}/users`} inherit>
      People
    </Anchor>
  );
  if (one) return <Known one={one} tenantId={tenantId} crumb={crumb} />;
  return (
    <Page title="Person" crumb={crumb}>
      <Shown of={people}>
        {() => (
          <Empty icon={<IconUserOff size={32} />} title="There is no such person in this tenant">
            The address may be of somebody else's tenant, or mistyped.
          </Empty>
        )}
      </Shown>
    </Page>
  );
}

function Known({ one, tenantId, crumb }: { one: Person; tenantId: string; crumb: React.ReactNode }) {
  const [giving, give] = useState(false);
  const may = useMay({ tenant_id: tenantId });
  return (
    <Page
      title={one.name}
      crumb={crumb}
      about={
        <Group gap="md" component="span">
          <State state={one.disabled ? "disabled" : "active"} />
          <span>{one.email}</span>
          <Group gap={4} component="span">
            <span className="mono">{one.id}</span>
            <Copy value={one.id} what={`the id of ${one.name}`} />
          </Group>
          <span>
            here since <Time at={one.created_at} />
          </span>
        </Group>
      }
      actions={<Standing one={one} tenantId={tenantId} />}
    >
      <Stack>
        <Group justify="space-between">
          <Text component="h2" fw={650} m={0}>
            Roles
          </Text>
          <Begin permission="iam.binding.create" place={{ tenant_id: tenantId }} act={() => give(true)}>
            Give a role
          </Begin>
        </Group>
        {may("iam.binding.read") && <Held one={one} tenantId={tenantId} />}
      </Stack>
      <Group gap="lg">
        {may("iam.decision.explain") && (
          <Anchor component={Link} size="sm" to={`/tenants/${tenantId}/roles?who=${one.id}`}>
            May they do something?
          </Anchor>
        )}
        {may("ledger.audit.read") && (
          <Anchor component={Link} size="sm" to={`/tenants/${tenantId}/audit?actor=${one.id}`}>
            What they did
          </Anchor>
        )}
      </Group>
      {giving && <GiveRole tenantId={tenantId} people={[one]} close={() => give(false)} />}
    </Page>
  );
}

function Held({ one, tenantId }: { one: Person; tenantId: string }) {
  const bindings = useBindings(tenantId);
  const placeOf = usePlaceOf();
  return (
    <Shown of={bindings} lines={2}>
      {(all) => {
        const held = all.filter((each) => each.principal_id === one.id);
        if (!held.length)
          return (
            <Text size="sm" c="dimmed">
              None: {one.name} can sign in, and sees nothing.
            </Text>
          );
        return (
          <Listed label="Roles" columns={["Role", "Where", ["Since", "sm"], ACTIONS]}>
            {held.map((each) => (
              <Table.Tr key={each.id}>
                <Table.Td>
                  <Label>{each.role}</Label>
                </Table.Td>
                <Table.Td>
                  <Text size="sm">{placeOf(each)}</Text>
                </Table.Td>
                <Table.Td visibleFrom="sm">
                  <Text size="sm" c="dimmed" component="span">
                    <Time at={each.created_at} />
                  </Text>
                </Table.Td>
                <Table.Td ta="right">
                  <TakeRole tenantId={tenantId} binding={each} who={one.name} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Listed>
        );
      }}
    </Shown>
  );
}

/** In or out: the one thing an administrator decides about the account itself. */
function Standing({ one, tenantId }: { one: Person; tenantId: string }) {
  const [asked, ask] = useState(false);
  const place = { tenant_id: tenantId };
  const may = useMay(place);
  const myself = useMe().data?.principal.id === one.id;
  const path = { tenant_id: tenantId, user_id: one.id };
  const verb = one.disabled ? "Enable" : "Disable";
  if (myself) return null;
  if (!may("tenancy.user.disable")) {
    return (
      <Refused permission="tenancy.user.disable" place={place}>
        {verb}
      </Refused>
    );
  }
  return (
    <>
      <Button variant="default" onClick={() => ask(true)}>
        {verb}
      </Button>
      {asked && (
        <Confirm
          title={`${verb} ${one.name}`}
          impact={
            one.disabled
              ? "They can sign in again, with the roles they held before."
              : "Out at once: their sessions end and they get no new ones. What they asked for goes on, and their roles wait for them."
          }
          verb={verb}
          danger={!one.disabled}
          name={one.disabled ? undefined : one.name}
          close={() => ask(false)}
          act={() => api.POST(`${ONE}/${one.disabled ? "enable" : "disable"}`, { params: { path } })}
        />
      )}
    </>
  );
}
