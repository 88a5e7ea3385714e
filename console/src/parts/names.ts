// Display names for keys of the platform and of apps: roles, states, operation kinds, reported facts.

/** Names that do not follow from their parts. */
const WHOLE: Record<string, string> = {
  multi_node: "Multi-node",
  single_node: "Single node",
  memory_mb: "Memory (MB)",
  memory_gb: "Memory (GB)",
  disk_gb: "Disk (GB)",
  os: "Operating system",
  node_agent: "Machine agent",
  node_name: "Machine",
  node: "Node",
  rotate_keys: "Rotate keys",
  reconfigure: "Update settings",
  release_claim: "Release claim",
  tombstone: "Force-close",
  not_enabled: "Not enabled",
  user: "Person",
  unclaimed: "Not picked up yet",
};

const PARTS: Record<string, string> = {
  api: "API",
  cgroup: "cgroup",
  cpu: "CPU",
  cpus: "CPUs",
  cuda: "CUDA",
  dns: "DNS",
  gb: "GB",
  gid: "GID",
  gpu: "GPU",
  gpus: "GPUs",
  gres: "GRES",
  id: "ID",
  ids: "IDs",
  ip: "IP",
  mb: "MB",
  mib: "MiB",
  mpi: "MPI",
  nvidia: "NVIDIA",
  oidc: "OIDC",
  os: "OS",
  sku: "SKU",
  skus: "SKUs",
  ssh: "SSH",
  tls: "TLS",
  uid: "UID",
  url: "URL",
  uuid: "UUID",
};

const DAEMON = /^[a-z]+(ctld|dbd|shd)$/; // services are spelled as they are

/** A key as people read it: `add_member` is "Add member", `gpu_uuid` is "GPU UUID". */
export function displayName(key: string): string {
  const whole = WHOLE[key] ?? (DAEMON.test(key) ? key : undefined);
  if (whole) return whole;
  const plain = key
    .split("_")
    .map((part) => PARTS[part] ?? part)
    .join(" ");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

const ROLES: Record<string, string> = {
  platform_admin: "Platform admin",
  platform_ops: "Platform operator",
  tenant_admin: "Tenant admin",
  project_admin: "Project admin",
  project_member: "Project member",
  project_viewer: "Project viewer",
  app_operator: "App operator",
  node_agent: "Machine agent",
};

/** A tenant's own roles have the names that the tenant gave them. */
export function roleName(role: string): string {
  return ROLES[role] ?? role;
}
