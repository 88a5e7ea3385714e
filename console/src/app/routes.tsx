// The routes of the console. They mirror the API's paths without /v1.

import { createBrowserRouter } from "react-router";
import { SignIn } from "../session/SignIn";
import { Broken } from "./Broken";
import { Home } from "./Home";
import { Nowhere } from "./Nowhere";
import { Shell } from "./Shell";

type Module = Record<string, React.ComponentType>;
const page = (load: () => Promise<Module>, name: string) => async () => ({ Component: (await load())[name] });

export const router = createBrowserRouter([
  { path: "/sign-in", element: <SignIn /> },
  {
    path: "/invitation",
    hydrateFallbackElement: <div />,
    lazy: page(() => import("../session/InvitationPage"), "InvitationPage"),
  },
  {
    element: <Shell />,
    errorElement: <Broken />,
    hydrateFallbackElement: <div />,
    children: [
      { index: true, element: <Home /> },
      { path: "projects/:projectId/catalog", lazy: page(() => import("../catalog/CatalogPage"), "CatalogPage") },
      { path: "projects/:projectId/deploy/:appSlug", lazy: page(() => import("../deploy/DeployPage"), "DeployPage") },
      {
        path: "projects/:projectId/instances",
        lazy: page(() => import("../instances/InstancesPage"), "InstancesPage"),
      },
      {
        path: "projects/:projectId/instances/:instanceId",
        lazy: page(() => import("../instances/InstancePage"), "InstancePage"),
      },
      {
        path: "projects/:projectId/instances/:instanceId/members/:memberId",
        lazy: page(() => import("../instances/MemberPage"), "MemberPage"),
      },
      {
        path: "projects/:projectId/operations",
        lazy: page(() => import("../operations/OperationsPage"), "OperationsPage"),
      },
      {
        path: "projects/:projectId/operations/:operationId",
        lazy: page(() => import("../operations/OperationPage"), "OperationPage"),
      },
      {
        path: "projects/:projectId/allocations",
        lazy: page(() => import("../capacity/AllocationsPage"), "AllocationsPage"),
      },
      { path: "projects/:projectId/events", lazy: page(() => import("../history/EventsPage"), "EventsPage") },
      {
        path: "projects/:projectId/service-accounts",
        lazy: page(() => import("../people/ServiceAccountsPage"), "ServiceAccountsPage"),
      },
      {
        path: "projects/:projectId/credentials",
        lazy: page(() => import("../people/CredentialsPage"), "CredentialsPage"),
      },
      {
        path: "projects/:projectId/delegations",
        lazy: page(() => import("../people/DelegationsPage"), "DelegationsPage"),
      },
      { path: "projects/:projectId/access", lazy: page(() => import("../people/AccessPage"), "AccessPage") },
      { path: "projects/:projectId/policies", lazy: page(() => import("../policies/PoliciesPage"), "PoliciesPage") },
      {
        path: "projects/:projectId/entitlements",
        lazy: page(() => import("../policies/EntitlementsPage"), "EntitlementsPage"),
      },
      {
        path: "tenants/:tenantId/policies",
        lazy: page(() => import("../policies/PoliciesPage"), "TenantPoliciesPage"),
      },
      { path: "regions", lazy: page(() => import("../capacity/RegionsPage"), "RegionsPage") },
      { path: "skus", lazy: page(() => import("../capacity/SkusPage"), "SkusPage") },
      { path: "tenants", lazy: page(() => import("../tenancy/TenantsPage"), "TenantsPage") },
      { path: "tenants/:tenantId/projects", lazy: page(() => import("../tenancy/ProjectsPage"), "ProjectsPage") },
      { path: "tenants/:tenantId/users", lazy: page(() => import("../people/UsersPage"), "UsersPage") },
      { path: "tenants/:tenantId/users/:userId", lazy: page(() => import("../people/PersonPage"), "PersonPage") },
      {
        path: "tenants/:tenantId/identity-providers",
        lazy: page(() => import("../people/ProvidersPage"), "ProvidersPage"),
      },
      { path: "tenants/:tenantId/roles", lazy: page(() => import("../people/RolesPage"), "RolesPage") },
      { path: "policies", lazy: page(() => import("../policies/PoliciesPage"), "PlatformPoliciesPage") },
      { path: "tenants/:tenantId/nodes", lazy: page(() => import("../capacity/NodesPage"), "NodesPage") },
      { path: "tenants/:tenantId/audit", lazy: page(() => import("../history/AuditPage"), "AuditPage") },
      { path: "triage", lazy: page(() => import("../triage/TriagePage"), "TriagePage") },
      { path: "triage/:correlationId", lazy: page(() => import("../triage/TriagePage"), "TriagePage") },
      { path: "*", element: <Nowhere /> },
    ],
  },
]);
