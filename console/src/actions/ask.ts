// Asking the platform for an action. Each answer is boiled down to the operations that were made.

import { api, type Schemas } from "../api/client";

export interface Fields {
  reason?: string;
  deadlineS?: number;
  requeue?: boolean; // what outlives the deadline begins anew elsewhere, instead of keeping its member
  anyway?: boolean; // also if the app has stopped trying
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

type Ask = (target: Target, said: Fields) => Promise<Asked>;

const at = ({ projectId, instance }: Target) => ({ project_id: projectId, instance_id: instance.id });
const of = (target: Target) => ({ ...at(target), member_id: target.memberId ?? "" });
const op = (target: Target) => ({ project_id: target.projectId, operation_id: target.operationId ?? "" });
const because = (said: Fields) => ({ reason: said.reason || null });
const until = (said: Fields) => ({
  deadline_s: said.deadlineS,
  at_deadline: said.deadlineS !== undefined && said.requeue ? ("requeue" as const) : undefined,
});
const again = (said: Fields) => ({ try_anyway: said.anyway ?? false });
const one = (answer: { data?: { operation: { id: string } } }): Asked => ({
  operations: answer.data ? [answer.data.operation.id] : [],
});
const none: Asked = { operations: [] };

const I = "/v1/projects/{project_id}/instances/{instance_id}" as const;
const M = "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}" as const;
const O = "/v1/projects/{project_id}/operations/{operation_id}" as const;

export const ASK_INSTANCE: Record<string, Ask> = {
  start: async (t, said) => one(await api.POST(`${I}/start`, { params: { path: at(t) }, body: because(said) })),
  stop: async (t, said) => one(await api.POST(`${I}/stop`, { params: { path: at(t) }, body: because(said) })),
  restart: async (t, said) => one(await api.POST(`${I}/restart`, { params: { path: at(t) }, body: because(said) })),
  rotate_keys: async (t, said) =>
    one(await api.POST(`${I}/rotate-keys`, { params: { path: at(t) }, body: because(said) })),
  rollback: async (t, said) => one(await api.POST(`${I}/rollback`, { params: { path: at(t) }, body: because(said) })),
  retry: async (t, said) =>
    ASK_OPERATION.retry?.({ ...t, operationId: t.instance.last_operation_id ?? "" }, said) ?? none,
  update: async (t, said) => {
    const header = { "if-match": t.instance.etag };
    const body = { inputs: said.inputs ?? {}, validate_only: false };
    return one((await api.POST(`${I}/update`, { params: { path: at(t), header }, body })) as Parameters<typeof one>[0]);
  },
  upgrade: async (t, said) =>
    one(await api.POST(`${I}/upgrade`, { params: { path: at(t) }, body: { version: said.version ?? "" } })),
  decommission: async (t, said) => {
    const body = { ...because(said), validate_only: false };
    return one((await api.POST(`${I}/decommission`, { params: { path: at(t) }, body })) as Parameters<typeof one>[0]);
  },
};

export function addMembers(component: string): Ask {
  return async (t, said) => {
    const body = { component_key: component, allocation_ids: said.machines, validate_only: false };
    const { data } = await api.POST(`${I}/members`, { params: { path: at(t) }, body });
    return { operations: data && "operations" in data ? data.operations.map((each) => each.id) : [] };
  };
}

export const ASK_MEMBER: Record<string, Ask> = {
  drain: async (t, said) =>
    one(await api.POST(`${M}/drain`, { params: { path: of(t) }, body: { ...because(said), ...until(said) } })),
  undrain: async (t, said) => one(await api.POST(`${M}/undrain`, { params: { path: of(t) }, body: because(said) })),
  restart: async (t, said) => one(await api.POST(`${M}/restart`, { params: { path: of(t) }, body: because(said) })),
  retry: async (t, said) => one(await api.POST(`${M}/retry`, { params: { path: of(t) }, body: again(said) })),
  replace: async (t, said) =>
    one(
      await api.POST(`${M}/replace`, {
        params: { path: of(t) },
        body: { ...because(said), ...until(said), allocation_id: said.machines[0] ?? "", host_is_gone: false },
      }),
    ),
  remove: async (t, said) => {
    const body = { ...because(said), ...until(said), validate_only: false, host_is_gone: false };
    return one((await api.POST(`${M}/remove`, { params: { path: of(t) }, body })) as Parameters<typeof one>[0]);
  },
  gone: (t, said) => withoutItsMachine(t, said),
  tombstone: async (t, said) => {
    await api.POST(`${M}/tombstone`, { params: { path: of(t) }, body: { reason: said.reason ?? "" } });
    return none;
  },
};

export const ASK_OPERATION: Record<string, Ask> = {
  retry: async (t, said) => one(await api.POST(`${O}/retry`, { params: { path: op(t) }, body: again(said) })),
  cancel: async (t) => {
    await api.POST(`${O}/cancel`, { params: { path: op(t) } });
    return none;
  },
  release_claim: async (t, said) => {
    await api.POST(`${O}/release-claim`, { params: { path: op(t) }, body: because(said) });
    return none;
  },
  abandon: async (t, said) => {
    await api.POST(`${O}/abandon`, { params: { path: op(t) }, body: { reason: said.reason ?? "" } });
    return none;
  },
};

/** Fenced, not cleaned: replaced where another machine was chosen, otherwise taken out. */
async function withoutItsMachine(t: Target, said: Fields): Promise<Asked> {
  const [successor] = said.machines;
  const body = { ...because(said), host_is_gone: true };
  const where = { params: { path: of(t) } };
  if (successor) return one(await api.POST(`${M}/replace`, { ...where, body: { ...body, allocation_id: successor } }));
  const asked = await api.POST(`${M}/remove`, { ...where, body: { ...body, validate_only: false } });
  return one(asked as Parameters<typeof one>[0]);
}

type Plan = (target: Target, machines: string[]) => Promise<{ data?: unknown }>;

const removal =
  (host_is_gone: boolean): Plan =>
  (t) => {
    const reason = host_is_gone ? "What would happen?" : null; // it needs one, and nothing is written
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
