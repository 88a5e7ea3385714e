"""Orphan records: a teardown was abandoned without evidence, so parts of an instance may be left on the machine.

A record stays open until a person has inspected the machine and resolved the record; nothing new is placed on the
machine before.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, insert, select, update

from ..authz.context import Context
from ..capacity.reads import joined_with_node
from ..events.event_log import declare
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.rows import Query, Scalar
from ..operations.targets import Subject, find_subject
from .rows import Leaver, OrphanId, OrphanRow
from .schemas import OrphanView
from .tables import orphans

declare(
    {
        "apps.orphan.recorded": (
            "An orphan record was created: files, services or processes of an instance may be left on a node."
        ),
        "apps.orphan.resolved": "An orphan record was resolved: a person inspected the node and declared it clean.",
    }
)

_ON_NODES = joined_with_node(orphans, orphans.c.node_id)
ORPHANS = Query(
    _ON_NODES.with_only_columns(*orphans.c, _ON_NODES.selected_columns.node_name, _ON_NODES.selected_columns.address),
    OrphanRow,
)
_ORPHAN = ORPHANS.where(orphans.c.project_id == bindparam("project"), orphans.c.id == bindparam("orphan"))
_OPEN_ON = select(orphans.c.node_id).where(
    orphans.c.node_id.in_(bindparam("nodes", expanding=True)), orphans.c.resolved_at.is_(None)
)
_FIRST_OPEN_ON = Scalar[str](_OPEN_ON.order_by(orphans.c.created_at, orphans.c.id).limit(1))


def record(ctx: Context, subject: Subject, leaver: Leaver, operation_id: str | None, reason: str) -> OrphanId:
    orphan_id = OrphanId(new_id("orph"))
    place = {"member_id": leaver.id, "allocation_id": leaver.allocation_id, "node_id": leaver.node_id}
    ctx.tx.execute(
        insert(orphans).values(
            id=orphan_id,
            tenant_id=subject.tenant_id,
            project_id=subject.project_id,
            instance_id=subject.id,
            operation_id=operation_id,
            reason=reason,
            created_by=ctx.principal.id,
            created_at=ctx.now,
            **place,
        )
    )
    ctx.emit("apps.orphan.recorded", orphan_id, {**subject.facts, "orphan_id": orphan_id, **place})
    return orphan_id


def resolve(ctx: Context, project_id: str, orphan_id: str, reason: str) -> OrphanView:
    """Mark an orphan record as resolved, because a person inspected the machine. A second call changes nothing and
    keeps the first reason."""
    subject_id = orphan_row(ctx.tx, project_id, orphan_id).instance_id
    subject = find_subject(ctx.tx, project_id, subject_id, lock=True)
    row = orphan_row(ctx.tx, project_id, orphan_id)
    ctx.resource_id = orphan_id
    if row.resolved_at is None and subject is not None:
        change = {"resolved_by": ctx.principal.id, "resolved_at": ctx.now, "resolution": reason}
        ctx.tx.execute(update(orphans).where(orphans.c.id == orphan_id).values(**change))
        facts = {"orphan_id": orphan_id, "node_id": row.node_id, "reason": reason}
        ctx.emit("apps.orphan.resolved", orphan_id, {**subject.facts, **facts})
    return OrphanView.model_validate(orphan_row(ctx.tx, project_id, orphan_id))


def orphans_of(project_id: str, *, resolved: bool) -> Query[OrphanRow]:
    at = orphans.c.resolved_at
    return ORPHANS.where(orphans.c.project_id == project_id, at.is_not(None) if resolved else at.is_(None))


def orphan_row(tx: Connection, project_id: str, orphan_id: str) -> OrphanRow:
    row = _ORPHAN.first(tx, project=project_id, orphan=orphan_id)
    if row is None:
        raise NotFound("There is no such orphan record in this project.")
    return row


def unresolved_node(tx: Connection, node_ids: Sequence[str]) -> str | None:
    """Return the node among these that has the oldest open orphan record, or None if none of them has one."""
    return _FIRST_OPEN_ON.first(tx, nodes=list(node_ids))
