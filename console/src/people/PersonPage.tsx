// One person: account state, roles and activity.

import { Anchor, Button, Group, Stack, Table, Text } from "@mantine/core";
import { IconUserOff } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { api } from "../api/client";
import { Confirm } from "../parts/Confirm";
import { Copy } from "../parts/Copy";
import { Label } from "../parts/Label";
import { ACTIONS, Listed } from "../parts/Listed";
import { roleName } from "../parts/names";
import { Empty, Page, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { Begin, Refused } from "../session/Refused";
import { useMay, useMe } from "../session/session";
import { AssignRole } from "./AssignRole";
import { RevokeRole } from "./RevokeRole";
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
          <Empty icon={<IconUserOff size={32} />} title="Person not found">
            This tenant has no such person.
          </Empty>
        )}
      </Shown>
    </Page>
  );
}

function Known({ one, tenantId, crumb }: { one: Person; tenantId: string; crumb: React.ReactNode }) {
  const [assigning, assign] = useState(false);
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
            <Copy value={one.id} what={`the ID of ${one.name}`} />
          </Group>
          <span>
            joined <Time at={one.created_at} />
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
          <Begin permission="iam.binding.create" place={{ tenant_id: tenantId }} act={() => assign(true)}>
            Assign role
          </Begin>
        </Group>
        {may("iam.binding.read") && <Held one={one} tenantId={tenantId} />}
      </Stack>
      <Group gap="lg">
        {may("iam.decision.explain") && (
          <Anchor component={Link} size="sm" to={`/tenants/${tenantId}/roles?who=${one.id}`}>
            Check access
          </Anchor>
        )}
        {may("ledger.audit.read") && (
          <Anchor component={Link} size="sm" to={`/tenants/${tenantId}/audit?actor=${one.id}`}>
            Audit trail
          </Anchor>
        )}
      </Group>
      {assigning && <AssignRole tenantId={tenantId} people={[one]} close={() => assign(false)} />}
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
              No roles. {one.name} can sign in but has no access yet.
            </Text>
          );
        return (
          <Listed label="Roles" columns={["Role", "Scope", ["Since", "sm"], ACTIONS]}>
            {held.map((each) => (
              <Table.Tr key={each.id}>
                <Table.Td>
                  <Label>{roleName(each.role)}</Label>
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
                  <RevokeRole tenantId={tenantId} binding={each} who={one.name} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Listed>
        );
      }}
    </Shown>
  );
}

/** Enables or disables the account. */
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
              ? "The person can sign in again with the same roles."
              : `${one.name} is signed out and disabled. Running operations continue, and roles are kept.`
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
