"""Checks of operations: acknowledged operations exist, ended operations stay ended, claim epochs rise, every transition
has its event and audit row, and every waiting operation can be continued."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable

from sqlalchemy import Connection, and_, exists, func, or_, select

from ..audit.tables import audit
from ..events.tables import events
from ..idempotency.requests import kept_answers
from ..instances.states import DECOMMISSION, INSTANCE
from ..instances.tables import instances
from ..kit.json_types import is_object
from ..kit.rows import RawRow
from ..operations.states import LIVE, OPERATION, RETRYABLE
from ..operations.tables import operations
from .findings import REPORT, Patient, Violation, each

ENDS = [status for status in OPERATION.moves if OPERATION.terminal(status)]
# Event types without an audit row.
UNAUDITED = (  # no request behind them: a node reported or was silent, a lease or a phase timed out
    *(f"capacity.node.{state}" for state in ("ready", "cordoned", "draining", "unknown", "lost", "trust_reset")),
    "capacity.allocation.overdue",
    "apps.operation.stuck",
    "apps.operation.unstuck",
)
PREFIX = "apps.operation."


def acknowledged(patient: Patient) -> list[Violation]:
    way_out = "Restore the newest backup that has it, or have the caller repeat the request with a new key."
    return [
        Violation(f"{operation} was acknowledged (request {key}) but does not exist.", [operation], way_out)
        for key, operation in patient.read(_lost)
    ]


def _lost(tx: Connection) -> list[tuple[str, str]]:
    """Return the request key and the operation id of each stored response whose operation does not exist. Responses may
    be many and large, so they are read in pages."""
    known: set[str] = set(tx.execute(select(operations.c.id)).scalars())
    return [
        (answer.key, operation)
        for answer in kept_answers(tx)
        if (operation := _operation_in(answer.body)) and operation not in known
    ]


def _operation_in(body: str) -> str | None:
    if '"op_' not in body:
        return None
    answer: object = json.loads(body)
    if not is_object(answer):
        return None
    operation = answer.get("operation")
    inner = operation if is_object(operation) else answer
    name = inner.get("id")
    return name if isinstance(name, str) and name.startswith("op_") else None


def ended(patient: Patient) -> list[Violation]:
    o = operations.c
    query = select(o.id, o.status, o.finished_at, o.lease_expires_at).where(
        or_(
            and_(o.status.in_(ENDS), or_(o.finished_at.is_(None), o.lease_expires_at.is_not(None))),
            and_(o.status.in_(LIVE), o.finished_at.is_not(None)),
        )
    )
    wrong = each(
        patient.rows(query), lambda row: f"{row.id} is {row.status}, but its end time or its lease contradicts that."
    )
    return wrong + patient.read(_moved_after_end)


def _moved_after_end(tx: Connection) -> list[Violation]:
    over: dict[str, str] = {}
    violations: list[Violation] = []
    for row in _transitions(tx):
        if row.subject in over:
            what = f"{row.subject} was {over[row.subject]} and then {row.type.removeprefix(PREFIX)}: an end is final."
            violations.append(Violation(what, [row.subject], REPORT))
        if row.type.removeprefix(PREFIX) in ENDS:
            over[row.subject] = row.type.removeprefix(PREFIX)
    return violations


def _transitions(tx: Connection) -> Iterable[RawRow]:
    e = events.c
    query = select(e.subject, e.type, e.data).where(e.type.startswith(PREFIX, autoescape=True))
    return tx.execute(query.order_by(e.tenant_id, e.sequence))


def claims(patient: Patient) -> list[Violation]:
    return patient.read(_unclaimed) + patient.read(_epochs) + patient.read(_two_at_once)


def _unclaimed(tx: Connection) -> list[Violation]:
    o = operations.c
    query = select(o.id, o.claim_epoch).where(o.status == "running", or_(o.claim_epoch < 1, o.claimant_id.is_(None)))
    return each(list(tx.execute(query)), lambda row: f"{row.id} runs under epoch {row.claim_epoch} without a holder.")


def _epochs(tx: Connection) -> list[Violation]:
    highest: dict[str, int] = defaultdict(int)
    violations: list[Violation] = []
    for row in _transitions(tx):
        if row.type == f"{PREFIX}claimed":
            epoch = row.data["claim_epoch"]
            if epoch <= highest[row.subject]:
                sentence = f"{row.subject} was claimed under epoch {epoch} after epoch {highest[row.subject]}."
                violations.append(Violation(sentence, [row.subject], REPORT))
            highest[row.subject] = max(epoch, highest[row.subject])
    for row in tx.execute(select(operations.c.id, operations.c.claim_epoch)):
        if row.claim_epoch < highest[row.id]:
            sentence = f"{row.id} is at epoch {row.claim_epoch}, but epoch {highest[row.id]} was issued already."
            violations.append(Violation(sentence, [row.id], REPORT))
    return violations


def _two_at_once(tx: Connection) -> list[Violation]:
    o = operations.c
    query = select(o.target_id, func.count()).where(o.status.in_(LIVE)).group_by(o.target_id).having(func.count() > 1)
    return each(list(tx.execute(query)), lambda row: f"{row.target_id} has {row[1]} operations in progress at once.")


def recorded(patient: Patient) -> list[Violation]:
    return patient.read(_unrecorded) + patient.read(_unaudited)


def _unrecorded(tx: Connection) -> list[Violation]:
    """Find operations whose events do not show that they were queued exactly
    once and ended at most once, as their status says.

    Operations older than the stored events are skipped.
    """
    counts = Counter((row.subject, row.type.removeprefix(PREFIX)) for row in _transitions(tx))
    oldest = select(events.c.tenant_id, func.min(events.c.sequence), func.min(events.c.at)).group_by(events.c.tenant_id)
    kept_since = {tenant: at if first > 1 else 0 for tenant, first, at in tx.execute(oldest)}
    o = operations.c
    violations: list[Violation] = []
    for row in tx.execute(select(o.id, o.status, o.tenant_id, o.created_at)):
        if row.created_at < kept_since.get(row.tenant_id, 0):
            continue
        expected = {"queued": 1} | {end: int(end == row.status) for end in ENDS}
        wrong = [
            f"{what} {counts[row.id, what]} times" for what, times in expected.items() if counts[row.id, what] != times
        ]
        if wrong:
            sentence = f"{row.id} is {row.status}, but its events say: {', '.join(wrong)}."
            violations.append(Violation(sentence, [row.id], REPORT))
    return violations


def _unaudited(tx: Connection) -> list[Violation]:
    known = exists().where(audit.c.correlation_id == events.c.correlation_id)
    query = select(events.c.id, events.c.type).where(events.c.type.not_in(UNAUDITED), ~known)
    return each(list(tx.execute(query)), lambda row: f"The event {row.id} ({row.type}) has no audit row.")


def waiting(patient: Patient) -> list[Violation]:
    """Check that every late operation is marked as stuck,
    and that a controller or a person can continue every operation and instance."""
    return _silently_stuck(patient) + patient.read(_without_lease) + patient.read(_left_alone)


def _silently_stuck(patient: Patient) -> list[Violation]:
    o, since = operations.c, patient.now - 60_000
    late = or_(o.deadline_at < since, and_(o.status == "running", o.lease_expires_at < since))
    query = select(o.id).where(o.status.in_(LIVE), o.stuck_reason.is_(None), late)
    way_out = "Check that a core runs: its housekeeping marks such operations. Then retry, release or abandon."
    return each(patient.rows(query), lambda row: f"{row.id} is late but not marked as stuck.", way_out)


def _without_lease(tx: Connection) -> list[Violation]:
    o = operations.c
    query = select(o.id).where(o.status == "running", o.lease_expires_at.is_(None))
    way_out = "Decommission the instance: that supersedes the operation."
    return each(
        list(tx.execute(query)),
        lambda row: f"{row.id} runs without a lease, so no controller can take it over.",
        way_out,
    )


def _left_alone(tx: Connection) -> list[Violation]:
    """Find instances in a transient state that have no operation in
    progress and no failed teardown that can be retried."""
    on_its_way = [state for state, moves in INSTANCE.moves.items() if "claim" in moves]
    o = operations.alias()
    live = exists().where(o.c.lock_key == instances.c.id, o.c.status.in_(LIVE))
    last = instances.outerjoin(operations, operations.c.id == instances.c.last_operation_id)
    query = select(instances.c.id, instances.c.state, operations.c.status, operations.c.kind).select_from(last)
    rows = tx.execute(query.where(instances.c.state.in_(on_its_way), ~live)).all()
    stuck = [row for row in rows if not (row.kind == DECOMMISSION and row.status in RETRYABLE)]
    way_out = "Decommission the instance, or retry its last operation."
    return each(stuck, lambda row: f"{row.id} is {row.state}, but has no operation in progress.", way_out)
