// The answer to "why can't I, and whom do I ask?": the role that is missing, and people who have it.

import { queries } from "../api/client";
import { roleName } from "../parts/names";
import { grants, leastRole } from "./grants";
import { useMay } from "./session";

/** "You need the Project admin role. Ask Dana." People are named where the user may read the project's members. */
export function useNeeded(projectId: string | undefined): (permission: string) => string {
  const may = useMay(projectId ? { project_id: projectId } : {});
  const members = queries.useQuery(
    "get",
    "/v1/projects/{project_id}/members",
    { params: { path: { project_id: projectId ?? "" } } },
    { enabled: Boolean(projectId) && may("iam.member.read"), staleTime: 60_000 },
  );
  return (permission) => {
    const role = leastRole(permission);
    if (!role) return "You don't have permission to do this.";
    const holders = members.data?.items.filter(
      (one) => one.kind === "user" && !one.disabled && grants(one.role, permission),
    );
    const names = [...new Set(holders?.map((one) => one.name.split(" ")[0]))].slice(0, 2);
    const helper = names.length
      ? names.join(" or ")
      : `an administrator of your ${role.startsWith("project") ? "project" : "organisation"}`;
    return `You need the ${roleName(role)} role. Ask ${helper}.`;
  };
}
