"""Records what nodes report in their polls: the trust generation that they applied, and their facts.

Most polls report nothing new, and then nothing is written here (`contacts` has the contact times).
"""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, update

from ..authz.context import Context
from ..kit.problems import UNSEEN, NotFound
from ..kit.rows import Query
from . import allocation_service
from .reads import node_row
from .schemas import Facts
from .states import NODE, SILENT, STANDINGS
from .tables import nodes
from .trust import HasTrust, believable, knows_more, tell_anew


@dataclass(frozen=True)
class PolledNode:
    """The columns of a node that decide whether a poll brings a change, for the node or for the platform."""

    id: str
    name: str
    state: str
    standing: str
    trust_generation: int
    trust_applied: int
    tasks_at: int | None


@dataclass(frozen=True)
class Report:
    """A node's report. `applied`: the trust generation applied on the host. `acknowledged`: the last generation that
    the node reported as applied and received a response for."""

    applied: int
    acknowledged: int
    facts: Facts | None
    runs_tasks: bool


_SHORT = nodes.c.id, nodes.c.name, nodes.c.state, nodes.c.standing
_COLUMNS = [*_SHORT, nodes.c.trust_generation, nodes.c.trust_applied, nodes.c.tasks_at]
_POLLED = Query(select(*_COLUMNS).where(nodes.c.id == bindparam("node")), PolledNode)
_FACTS = select(nodes.c.facts).where(nodes.c.id == bindparam("node"))


def origin(machine_id: str, boot_id: str) -> str:
    """Return the origin of a node key: the id of the machine that created the key, and the id of its boot."""
    return f"{machine_id}/{boot_id}"


def polled_node(tx: Connection, node_id: str) -> PolledNode:
    node = _POLLED.first(tx, node=node_id)
    if node is None:
        raise NotFound(UNSEEN)
    return node


def is_news(tx: Connection, node: PolledNode, report: Report) -> bool:
    """Return whether `record` would change anything for this report."""
    return (
        node.state not in STANDINGS
        or report.applied > node.trust_applied
        or is_ahead(node, report)
        or (report.runs_tasks and node.tasks_at is None)
        or (report.facts is not None and report.facts.model_dump() != tx.execute(_FACTS, {"node": node.id}).scalar())
    )


def is_ahead(node: HasTrust, report: Report) -> bool:
    """Return whether the node reports a trust generation that was never issued here, or never recorded as applied."""
    return report.applied > node.trust_generation or knows_more(node, report.acknowledged)


def record(ctx: Context, node_id: str, report: Report) -> None:
    node = node_row(ctx.tx, node_id, lock=True)
    ctx.resource_id = node_id
    applied = believable(node, report.applied)
    change: dict[str, object] = {}
    if is_ahead(polled_node(ctx.tx, node_id), report):
        tell_anew(ctx, node, max(report.applied, report.acknowledged))
    elif applied > node.trust_applied:
        change["trust_applied"] = applied
    if report.facts is not None and (facts := report.facts.model_dump()) != node.facts:
        change["facts"] = facts
    if report.runs_tasks and node.tasks_at is None:
        change["tasks_at"] = ctx.now
    if change:
        ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(**change))
    if "trust_applied" in change:
        allocation_service.settle(ctx, node, applied)
        ctx.note(ctx.entry("allowed", ctx.reason))
    _heard(ctx, polled_node(ctx.tx, node_id))


def _heard(ctx: Context, node: PolledNode) -> None:
    """Once a new or formerly silent node has applied its current trust, set its state to its standing (ready,
    cordoned or draining)."""
    action = "report" if node.state in STANDINGS else f"back_to_{node.standing}"
    behind = node.trust_applied < node.trust_generation
    waits = {"enrolling": node.trust_applied == 0} | dict.fromkeys(SILENT, behind)
    state = node.state if waits.get(node.state) else NODE.after(node.state, action)
    if state != node.state:
        ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(state=state))
        ctx.emit(f"capacity.node.{state}", node.id, {"node_name": node.name, "state": state})
