// The side bar. Pages that the user may not read are left out; their address still explains why.

import { Stack, Text } from "@mantine/core";
import {
  IconActivity,
  IconApps,
  IconArrowsExchange,
  IconBolt,
  IconBuilding,
  IconCpu,
  IconDoorEnter,
  IconFolders,
  IconHistory,
  IconId,
  IconKey,
  IconLicense,
  IconListSearch,
  IconMapPin,
  IconServer2,
  IconShield,
  IconStack2,
  IconUserShield,
  IconUsers,
  IconUsersGroup,
} from "@tabler/icons-react";
import { NavLink } from "react-router";
import { useMay, useWide } from "../session/session";
import { usePlace } from "./place";

type Entry = [path: string, title: string, icon: typeof IconApps, key: string];

const OF_PROJECT: Entry[] = [
  ["instances", "Instances", IconStack2, "apps.instance.read"],
  ["catalog", "Catalog", IconApps, "catalog.entitlement.read"],
  ["operations", "Operations", IconBolt, "apps.instance.read"],
  ["allocations", "Allocations", IconCpu, "capacity.allocation.read"],
  ["events", "Events", IconActivity, "ledger.event.read"],
  ["service-accounts", "Service accounts", IconId, "iam.service_account.read"],
  ["credentials", "Credentials", IconKey, "custody.credential.read"],
  ["access", "Access", IconUsers, "iam.member.read"],
  ["delegations", "Delegations", IconArrowsExchange, "iam.delegation.read"],
  ["entitlements", "Entitlements", IconLicense, "catalog.entitlement.read"],
  ["policies", "Policies", IconShield, "policy.project.read"],
];
const OF_TENANT: Entry[] = [
  ["projects", "Projects", IconFolders, "tenancy.project.create"],
  ["nodes", "Machines", IconServer2, "capacity.node.read"],
  ["users", "People", IconUsersGroup, "tenancy.user.read"],
  ["identity-providers", "Identity providers", IconDoorEnter, "tenancy.identity_provider.read"],
  ["roles", "Roles", IconUserShield, "iam.role.read"],
  ["policies", "Policies", IconShield, "policy.tenant.read"],
  ["audit", "Audit trail", IconHistory, "ledger.audit.read"],
];
const OF_PLATFORM: Entry[] = [
  ["tenants", "Tenants", IconBuilding, "platform.tenant.read"],
  ["regions", "Regions", IconMapPin, "capacity.region.create"],
  ["skus", "SKUs", IconCpu, "capacity.sku.create"],
  ["policies", "Policies", IconShield, "policy.platform.read"],
];

export function Nav() {
  const { project, tenant } = usePlace();
  const wide = useWide(tenant?.id);
  return (
    <Stack gap="lg" component="nav" aria-label="Pages">
      {project && (
        <Section
          title="Project"
          base={`/projects/${project.id}`}
          entries={OF_PROJECT}
          place={{ project_id: project.id }}
        />
      )}
      {tenant && wide && (
        <Section
          title={tenant.name}
          base={`/tenants/${tenant.id}`}
          entries={OF_TENANT}
          place={{ tenant_id: tenant.id }}
        />
      )}
      <Section title="Platform" base="" entries={OF_PLATFORM} place={{}} />
      <Stack gap={2}>
        <Heading>Support</Heading>
        <NavLink to="/triage" className="nav-link">
          <IconListSearch size={18} aria-hidden /> Triage
        </NavLink>
      </Stack>
    </Stack>
  );
}

function Section(props: {
  title: string;
  base: string;
  entries: Entry[];
  place: { project_id?: string; tenant_id?: string };
}) {
  const may = useMay(props.place);
  const seen = props.entries.filter(([, , , key]) => may(key));
  if (!seen.length) return null;
  return (
    <Stack gap={2}>
      <Heading>{props.title}</Heading>
      {seen.map(([path, title, Icon]) => (
        <NavLink key={path} to={`${props.base}/${path}`} end={!props.base} className="nav-link">
          <Icon size={18} aria-hidden /> {title}
        </NavLink>
      ))}
    </Stack>
  );
}

function Heading({ children }: { children: string }) {
  return (
    <Text size="xs" fw={600} c="dimmed" px={10} pb={4}>
      {children}
    </Text>
  );
}
