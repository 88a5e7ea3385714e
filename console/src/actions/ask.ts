// Requests for actions. Each answer is reduced to the operations that were created.

import { api, type Schemas } from "../api/client";
import { ACTIONS } from "../api/facts.gen";

export interface Fields {
  reason?: string;
  deadlineS?: number;
  requeue?: boolean; // jobs that outlast the deadline are requeued; otherwise the member stays
  anyway?: boolean; // also after the app stopped retrying
  machines: string[];
  inputs?: Record<string, unknown>;
  version?: string;
}

export interface Target {
  projectId: string;
  instance: Schemas["InstanceView"];
  memberId?: string;
  operationId?: string;
}

interface Asked {
  operations: string[];
}

type Ask = (target: Target, fields: Fields) => Promise<Asked>;

const at = ({ projectId, instance }: Target) => ({ project_id: projectId, instance_id: instance.id });
const of = (target: Target) => ({ ...at(target), member_id: target.memberId ?? "" });
const op = (target: Target) => ({ project_id: target.projectId, operation_id: target.operationId ?? "" });
const because = (fields: Fields) => ({ reason: fields.reason || null });
const until = (fields: Fields) => ({
  deadline_s: fields.deadlineS,
  at_deadline: fields.deadlineS !== undefined && fields.requeue ? ("requeue" as const) : undefined,
});
const again = (fields: Fields) => ({ try_anyway: fields.anyway ?? false });
const one = (answer: { data?: { operation: { id: string } } }): Asked => ({
  operations: answer.data ? [answer.data.operation.id] : [],
});
const none: Asked = { operations: [] };

const I = "/v1/projects/{project_id}/instances/{instance_id}" as const;
const M = "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}" as const;
const O = "/v1/projects/{project_id}/operations/{operation_id}" as const;

export const ASK_INSTANCE: Record<string, Ask> = {
  start: async (t, fields) => one(await api.POST(`${I}/start`, { params: { path: at(t) }, body: because(fields) })),
  stop: async (t, fields) => one(await api.POST(`${I}/stop`, { params: { path: at(t) }, body: because(fields) })),
  restart: async (t, fields) => one(await api.POST(`${I}/restart`, { params: { path: at(t) }, body: because(fields) })),
  rotate_keys: async (t, fields) =>
    one(await api.POST(`${I}/rotate-keys`, { params: { path: at(t) }, body: because(fields) })),
  rollback: async (t, fields) =>
    one(await api.POST(`${I}/rollback`, { params: { path: at(t) }, body: because(fields) })),
  retry: async (t, fields) =>
    ASK_OPERATION.retry?.({ ...t, operationId: t.instance.last_operation_id ?? "" }, fields) ?? none,
  update: async (t, fields) => {
    const header = { "if-match": t.instance.etag };
    const body = { inputs: fields.inputs ?? {}, validate_only: false };
    return one((await api.POST(`${I}/update`, { params: { path: at(t), header }, body })) as Parameters<typeof one>[0]);
  },
  upgrade: async (t, fields) =>
    one(await api.POST(`${I}/upgrade`, { params: { path: at(t) }, body: { version: fields.version ?? "" } })),
  decommission: async (t, fields) => {
    const body = { ...because(fields), validate_only: false };
    return one((await api.POST(`${I}/decommission`, { params: { path: at(t) }, body })) as Parameters<typeof one>[0]);
  },
};

export function addMembers(component: string): Ask {
  return async (t, fields) => {
    const body = { component_key: component, allocation_ids: fields.machines, validate_only: false };
    const { data } = await api.POST(`${I}/members`, { params: { path: at(t) }, body });
    return { operations: data && "operations" in data ? data.operations.map((each) => each.id) : [] };
  };
}

export const ASK_MEMBER: Record<string, Ask> = {
  drain: async (t, fields) =>
    one(await api.POST(`${M}/drain`, { params: { path: of(t) }, body: { ...because(fields), ...until(fields) } })),
  undrain: async (t, fields) => one(await api.POST(`${M}/undrain`, { params: { path: of(t) }, body: because(fields) })),
  restart: async (t, fields) => one(await api.POST(`${M}/restart`, { params: { path: of(t) }, body: because(fields) })),
  retry: async (t, fields) => one(await api.POST(`${M}/retry`, { params: { path: of(t) }, body: again(fields) })),
  replace: async (t, fields) =>
    one(
      await api.POST(`${M}/replace`, {
        params: { path: of(t) },
        body: { ...because(fields), ...until(fields), allocation_id: fields.machines[0] ?? "", host_is_gone: false },
      }),
    ),
  remove: async (t, fields) => {
    const body = { ...because(fields), ...until(fields), validate_only: false, host_is_gone: false };
    return one((await api.POST(`${M}/remove`, { params: { path: of(t) }, body })) as Parameters<typeof one>[0]);
  },
  gone: (t, fields) => withoutItsMachine(t, fields),
  tombstone: async (t, fields) => {
    await api.POST(`${M}/tombstone`, { params: { path: of(t) }, body: { reason: fields.reason ?? "" } });
    return none;
  },
};

export const ASK_OPERATION: Record<string, Ask> = {
  retry: async (t, fields) => one(await api.POST(`${O}/retry`, { params: { path: op(t) }, body: again(fields) })),
  cancel: async (t) => {
    await api.POST(`${O}/cancel`, { params: { path: op(t) } });
    return none;
  },
  release_claim: async (t, fields) => {
    await api.POST(ACTIONS.operation.release_claim.path, { params: { path: op(t) }, body: because(fields) });
    return none;
  },
  abandon: async (t, fields) => {
    await api.POST(`${O}/abandon`, { params: { path: op(t) }, body: { reason: fields.reason ?? "" } });
    return none;
  },
};

/** Fenced, not cleaned: replaced where another machine was chosen, otherwise removed. */
async function withoutItsMachine(t: Target, fields: Fields): Promise<Asked> {
  const [successor] = fields.machines;
  const body = { ...because(fields), host_is_gone: true };
  const where = { params: { path: of(t) } };
  if (successor) return one(await api.POST(`${M}/replace`, { ...where, body: { ...body, allocation_id: successor } }));
  const asked = await api.POST(`${M}/remove`, { ...where, body: { ...body, validate_only: false } });
  return one(asked as Parameters<typeof one>[0]);
}

type Plan = (target: Target, machines: string[]) => Promise<{ data?: unknown }>;

const removal =
  (host_is_gone: boolean): Plan =>
  (t) => {
    const reason = host_is_gone ? "Plan" : null; // required, and not recorded for a plan
    return api.POST(`${M}/remove`, { params: { path: of(t) }, body: { validate_only: true, host_is_gone, reason } });
  };

const adding =
  (component_key: string): Plan =>
  (t, allocation_ids) =>
    api.POST(`${I}/members`, { params: { path: at(t) }, body: { component_key, allocation_ids, validate_only: true } });

const PLANS: Record<string, Plan> = {
  decommission: (t) => api.POST(`${I}/decommission`, { params: { path: at(t) }, body: { validate_only: true } }),
  remove: removal(false),
  gone: removal(true),
};

/** What would happen: the same checks, nothing written. */
export async function planOf(
  key: string,
  target: Target,
  machines: string[],
): Promise<Schemas["PlanView"] | undefined> {
  const { data } = await (PLANS[key] ?? adding(key.slice("add_".length)))(target, machines);
  return (data as { plan?: Schemas["PlanView"] } | undefined)?.plan;
}
