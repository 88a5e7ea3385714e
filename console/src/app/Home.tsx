// The start page: opens the last project, or the page where a user without one begins.

import { IconFolderOff } from "@tabler/icons-react";
import { Navigate } from "react-router";
import { Empty, Page } from "../parts/Page";
import { useMay, useMe } from "../session/session";
import { usePlace } from "./place";

export function Home() {
  const { project, tenant } = usePlace();
  const me = useMe().data;
  const platform = useMay({});
  const here = useMay(tenant ? { tenant_id: tenant.id } : {});
  if (project) return <Navigate to={`/projects/${project.id}/instances`} replace />;
  if (platform("platform.tenant.read")) return <Navigate to="/tenants" replace />;
  if (tenant && here("tenancy.project.create")) return <Navigate to={`/tenants/${tenant.id}/projects`} replace />;
  return (
    <Page title={`Welcome, ${me?.principal.name ?? ""}`}>
      <Empty icon={<IconFolderOff size={32} />} title="No projects yet">
        Ask an administrator of your organisation for a role in a project. Your user ID is {me?.principal.id}.
      </Empty>
    </Page>
  );
}
