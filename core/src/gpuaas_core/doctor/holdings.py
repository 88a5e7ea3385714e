"""Checks of event sequences, audit chains, owners of allocations, quotas, trust of nodes, and consistent states."""

from sqlalchemy import Connection, Join, Table, and_, exists, func, or_, select

from ..audit.verify import streams, verify
from ..capacity.states import ALLOCATION, NODE
from ..capacity.tables import allocation_holds, allocations, nodes, quotas
from ..counters.reads import COUNTERS
from ..events.tables import events
from ..instances.states import DECOMMISSION, DEPLOY, INSTANCE, KINDS, MEMBER, OF_INSTANCE
from ..instances.tables import instances, members
from ..kit.lifecycle import Lifecycle
from ..kit.rows import RawRow
from ..operations.states import LIVE, OPERATION
from ..operations.tables import operations
from ..operations.watchdog import KEPT_DAYS
from ..teardown.tables import orphans
from ..tenancy.reads import belongs_to
from .findings import REPORT, Patient, Violation, each

LIVES: list[tuple[Table, str, Lifecycle]] = [
    (instances, "state", INSTANCE),
    (members, "state", MEMBER),
    (operations, "status", OPERATION),
    (allocations, "state", ALLOCATION),
    (nodes, "state", NODE),
]


def event_sequences(patient: Patient) -> list[Violation]:
    """Check that no sequence number is missing from the tenant's oldest stored event up to the tenant's counter."""
    e, h = events.c, COUNTERS.c
    ranges = select(
        e.tenant_id, func.count().label("kept"), func.min(e.sequence).label("first"), func.max(e.sequence).label("last")
    )
    kept = ranges.group_by(e.tenant_id).subquery()
    query = select(h.tenant_id, h.sequence, kept.c.kept, kept.c.first, kept.c.last)
    query = query.select_from(COUNTERS.outerjoin(kept, kept.c.tenant_id == h.tenant_id))
    wrong = [row for row in patient.rows(query) if not _dense(row)]
    orphans = select(e.tenant_id).where(e.tenant_id.not_in(select(h.tenant_id))).distinct()
    way_out = "Restore a backup that has the events; readers must list their resources again."
    return each(wrong, _gap, way_out) + each(
        patient.rows(orphans), lambda row: f"{row.tenant_id} has events but no counter.", way_out
    )


def _dense(row: RawRow) -> bool:
    if row.kept is None:
        return row.sequence == 0
    return row.last == row.sequence and row.kept == row.last - row.first + 1


def _gap(row: RawRow) -> str:
    return f"{row.tenant_id}: {row.kept or 0} events from {row.first} to {row.last}, but the counter is {row.sequence}."


def audit_chains(patient: Patient) -> list[Violation]:
    names = streams(patient.read, patient.checkpoints)
    verdicts = [verify(patient.read, patient.checkpoints, name) for name in names]
    return [
        Violation(
            f"{verdict.tenant_id}: {verdict.broken.sentence}",
            [f"{verdict.tenant_id}/{verdict.broken.sequence}"],
            verdict.broken.way_out,
        )
        for verdict in verdicts
        if verdict.broken
    ]


def owners(patient: Patient) -> list[Violation]:
    checks = (_shared_nodes, _foreign_nodes, _dead_holds, _foreign_holds, _unheld_members)
    return [violation for check in checks for violation in patient.read(check)]


def _shared_nodes(tx: Connection) -> list[Violation]:
    a = allocations.c
    query = select(a.node_id, func.count()).where(a.state != "released").group_by(a.node_id).having(func.count() > 1)
    return each(list(tx.execute(query)), lambda row: f"{row.node_id} is held by {row[1]} allocations at once.")


def _foreign_nodes(tx: Connection) -> list[Violation]:
    joined = allocations.join(nodes, nodes.c.id == allocations.c.node_id)
    mixed = ~belongs_to(allocations.c.project_id, nodes.c.tenant_id)
    query = select(allocations.c.id).select_from(joined).where(mixed)
    return each(list(tx.execute(query)), lambda row: f"{row.id} holds a node of another tenant.")


def _holds() -> Join:
    h = allocation_holds.c
    held = (h.holder_kind == OF_INSTANCE) & (instances.c.id == h.holder_id)
    return allocation_holds.join(instances, held).join(
        allocations, allocations.c.id == allocation_holds.c.allocation_id
    )


def _dead_holds(tx: Connection) -> list[Violation]:
    dead = or_(instances.c.state == "deleted", allocations.c.state == "released")
    query = (
        select(allocation_holds.c.allocation_id, instances.c.id, instances.c.state).select_from(_holds()).where(dead)
    )
    return each(list(tx.execute(query)), lambda row: f"{row.allocation_id} is held for {row.id}, which is {row.state}.")


def _foreign_holds(tx: Connection) -> list[Violation]:
    query = select(allocation_holds.c.allocation_id, instances.c.id).select_from(_holds())
    query = query.where(instances.c.project_id != allocations.c.project_id)
    return each(list(tx.execute(query)), lambda row: f"{row.allocation_id} and {row.id} are of different projects.")


def _unheld_members(tx: Connection) -> list[Violation]:
    """Find members on an allocation that their instance does not hold: a second instance could be placed on it."""
    m, h = members.c, allocation_holds.c
    held = exists().where(
        h.allocation_id == m.allocation_id, h.holder_kind == OF_INSTANCE, h.holder_id == m.instance_id
    )
    query = select(m.id, m.allocation_id).where(m.state != "removed", ~held)
    return each(list(tx.execute(query)), lambda row: f"{row.id} is on {row.allocation_id} without holding it.")


def used_quotas(patient: Patient) -> list[Violation]:
    a, q = allocations.c, quotas.c
    live = select(a.project_id, func.count().label("held"), func.sum(a.gpus).label("gpus")).where(a.state != "released")
    held = live.group_by(a.project_id).subquery()
    h = held.c
    counted = select(q.project_id, q.used_allocations, q.used_gpus, h.held, h.gpus)
    counted = counted.select_from(quotas.outerjoin(held, h.project_id == q.project_id))
    differs = or_(q.used_allocations != func.coalesce(h.held, 0), q.used_gpus != func.coalesce(h.gpus, 0))
    uncounted = select(h.project_id, h.held).where(h.project_id.not_in(select(q.project_id)))
    return each(
        patient.rows(counted.where(differs)),
        lambda row: (
            f"{row.project_id} holds {row.held or 0} allocations with {row.gpus or 0} GPUs, but"
            f" {row.used_allocations} with {row.used_gpus} are counted."
        ),
    ) + each(
        patient.rows(uncounted), lambda row: f"{row.project_id} holds {row.held} allocations that are not counted."
    )


def trust(patient: Patient) -> list[Violation]:
    n, a = nodes.c, allocations.c
    query = select(n.id, n.trust_applied, n.trust_generation).where(n.trust_applied > n.trust_generation)
    ahead = each(
        patient.rows(query),
        lambda row: f"{row.id} applied trust {row.trust_applied}, but only {row.trust_generation} was issued.",
    )
    asked = or_(a.state == "active", and_(a.state == "released", n.state != "retired"))
    known = and_(asked, a.trust_generation > n.trust_applied)
    query = select(a.id, a.state, n.id.label("node")).select_from(allocations.join(nodes, n.id == a.node_id))
    query = query.where(or_(known, a.trust_generation > n.trust_generation))
    return ahead + each(
        patient.rows(query), lambda row: f"{row.id} is {row.state}, but {row.node} never reported the trust for it."
    )


def agreement(patient: Patient) -> list[Violation]:
    unknown = [violation for life in LIVES for violation in patient.read(lambda tx, life=life: _unknown(tx, *life))]
    return unknown + patient.read(_disagreeing) + _not_gone(patient)


def _unknown(tx: Connection, table: Table, column: str, life: Lifecycle) -> list[Violation]:
    query = select(table.c.id, table.c[column]).where(table.c[column].not_in(list(life.moves)))
    return each(
        list(tx.execute(query)),
        lambda row: f"{row[0]} is {row[1]!r}, which is no state in the lifecycle of: {life.noun}.",
    )


def _disagreeing(tx: Connection) -> list[Violation]:
    """Find instances whose state does not fit their operation in progress,
    for example a running instance during a deploy."""
    fitting = {DEPLOY: ("requested", "provisioning"), DECOMMISSION: ("deleting",)} | {
        kind: (INSTANCE.moves["running" if known.ask != "start" else "stopped"][str(known.ask)],)
        for kind, known in KINDS.items()
        if known.target == OF_INSTANCE and known.ask and kind != DECOMMISSION
    }
    o, i = operations.c, instances.c
    query = select(o.id, o.kind, i.id.label("instance"), i.state).join(instances, i.id == o.lock_key)
    rows = tx.execute(query.where(o.status.in_(LIVE), o.kind.in_(list(fitting))))
    wrong = [row for row in rows if row.state not in fitting[row.kind]]
    return each(wrong, lambda row: f"The {row.kind} {row.id} is in progress, but {row.instance} is {row.state}.")


def _not_gone(patient: Patient) -> list[Violation]:
    i, o, m = instances.c, operations.c, members.c
    last = instances.outerjoin(operations, o.id == i.last_operation_id)
    given_up = exists().where(orphans.c.instance_id == i.id)
    torn_down = and_(o.kind == DECOMMISSION, or_(o.status == "succeeded", given_up))
    left = exists().where(m.instance_id == i.id, m.state != "removed")
    forgotten = i.updated_at < patient.now - KEPT_DAYS * 24 * 3600 * 1000
    unproven = or_(and_(o.id.is_(None), ~forgotten), ~torn_down, left)
    query = select(i.id).select_from(last).where(i.state == "deleted", unproven)
    way_out = f"Inspect its nodes: processes may still run there. {REPORT}"
    return each(patient.rows(query), lambda row: f"{row.id} is deleted, but its teardown did not succeed.", way_out)
