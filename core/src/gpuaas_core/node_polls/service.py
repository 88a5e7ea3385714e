"""What a node poll reads (trust, tasks, identity renewal), and what it records when the agent reports a change."""

from dataclasses import dataclass

from ..authz.context import Context
from ..capacity import node_reports, reads
from ..capacity.node_reports import Report
from ..custody.vault import Vault
from ..identity import node_keys
from ..machine_access.host_trust import trust_of
from ..machine_access.schemas import TrustView
from ..node_tasks import reads as tasks
from ..node_tasks import service as task_queue
from . import schemas


@dataclass(frozen=True)
class Found:
    news: bool  # the poll reports something that is not recorded yet
    trust_due: bool
    task_waits: bool
    task_ended: bool  # the task that the agent works on
    look_again_at: int | None  # a task exists that cannot be handed out yet
    renew_identity: bool


def find(ctx: Context, node_id: str, body: schemas.Poll) -> Found:
    node, report = node_reports.polled_node(ctx.tx, node_id), _report(body)
    due_at = task_queue.next_due(ctx, node_id) if body.takes_task else None
    origin = node_reports.origin(body.machine_id, body.boot_id)
    return Found(
        news=node_reports.is_news(ctx.tx, node, report),
        trust_due=node.trust_generation > body.applied_generation or node_reports.is_ahead(node, report),
        task_waits=due_at is not None and task_queue.waits(ctx, node_id),
        task_ended=body.working_on is not None and not tasks.is_live(ctx.tx, node_id, body.working_on),
        look_again_at=due_at,
        renew_identity=node_keys.renewal_due(ctx.tx, node_id, origin, ctx.now, life_s=ctx.durations.node_key_s),
    )


def record(ctx: Context, node_id: str, body: schemas.Poll) -> schemas.PollView:
    node_reports.record(ctx, node_id, _report(body))
    return schemas.PollView(trust=None, task=None, renew_identity=False)


def lease(ctx: Context, vault: Vault, node_id: str, found: Found) -> schemas.PollView | None:
    task = task_queue.lease(ctx, vault, node_id)
    return task and schemas.PollView(trust=None, task=task, renew_identity=found.renew_identity)


def trust(ctx: Context, vault: Vault, node_id: str) -> TrustView:
    return trust_of(ctx.tx, vault, reads.node_row(ctx.tx, node_id), ctx.now)


def _report(body: schemas.Poll) -> Report:
    return Report(
        applied=body.applied_generation,
        acknowledged=body.acknowledged_generation,
        facts=body.facts,
        runs_tasks=body.takes_task or body.working_on is not None,
    )
