"""The interface between the operations engine and its targets, and the registry of targets.

A target kind is code of the core: a room implements `Target`, and `api/` registers it when the process starts. Targets
cannot be registered over the API. `R` is the row type of the target's room; the engine passes it on without using it.

Lock order: the target's row, then the operation's row, then the counters of events and audit. Code that locks an
operation first (claims, the watchdog) only tries the target's lock, and skips the operation if it is taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NewType, Protocol, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection

from ..authz.context import Context
from ..kit.json_types import Json, JsonValue
from ..kit.lifecycle import WrongMoment
from ..kit.problems import Problem
from ..kit.wire import View
from . import schemas
from .rows import OperationId, OperationRow
from .states import OPERATION

R = TypeVar("R")
ClaimReport = schemas.Progress | schemas.Complete | schemas.Fail


@dataclass(frozen=True, kw_only=True)
class OperationKind:
    """The properties of a kind of operation that the engine uses."""

    undoable: bool = True  # a controller may report that it failed and changed nothing
    deadline_s: int = 3600
    phase_s: int = 300


@dataclass(frozen=True)
class Wire:
    """The wire models of a target's operations: the engine's own models, extended by the target's fields."""

    operation: type[schemas.OperationView]
    claim: type[schemas.ClaimView]
    accepted: type[View]
    progress: type[schemas.Progress] = schemas.Progress
    complete: type[schemas.Complete] = schemas.Complete
    fail: type[schemas.Fail] = schemas.Fail


@dataclass(frozen=True, kw_only=True)
class Order:
    """The description of an operation to queue, from its target: scope, payer, lock key, deadline and other columns."""

    target_id: str
    lock_key: str
    scope_kind: str
    scope_id: str
    tenant_id: str | None
    payer_id: str
    app_slug: str
    version: str
    from_state: str
    shares_lock: bool = False
    assigned_to: str | None = None
    deadline_s: int | None = None  # none: as the kind says
    phase_s: int | None = None


class Target(Protocol[R]):
    kind: str
    operation_kinds: Mapping[str, OperationKind]
    wire: Wire

    # What it is.

    def read(self, tx: Connection, operation: OperationRow) -> R: ...

    def read_many(self, tx: Connection, operations: Sequence[OperationRow]) -> Mapping[OperationId, R]:
        """Read the targets of a page of operations, by operation id; with one statement if the target supports it."""
        return {operation.id: self.read(tx, operation) for operation in operations}

    def lock(self, tx: Connection, operation: OperationRow) -> R:
        """Lock and return the target. It cannot be changed by other transactions until this transaction ends."""
        ...

    def try_lock(self, tx: Connection, operation: OperationRow) -> R | None:
        """Lock and return the target without waiting; None if another transaction holds the lock."""
        ...

    def order(self, tx: Connection, row: R, kind: str, params: Json | None, details: Json | None) -> Order: ...

    def facts(self, row: R, operation: OperationRow) -> Json:
        """Return the fields about the target that each event of the operation contains."""
        ...

    def allocations(self, tx: Connection, row: R) -> set[str]:
        """Return the allocations of the target. The controller of an operation gets access to these allocations
        only."""
        ...

    def fenced(self, tx: Connection, row: R, operation: OperationRow) -> set[str]:
        """Return the allocations whose machines were declared lost; not even this operation may access them. Empty by
        default."""
        return set()

    def refers_to(self, operation_id: ColumnElement[str]) -> ColumnElement[bool]:
        """Return an SQL condition that is true if an existing target refers to this operation. The cleanup of old
        operations then keeps the operation."""
        ...

    # What it looks like.

    def operation_details(self, operation: OperationRow) -> Mapping[str, object]:
        """Return the fields that `wire.operation` has in addition to the engine's own."""
        ...

    def controller_view(self, tx: Connection, row: R, operation: OperationRow) -> Mapping[str, object]:
        """Return the fields that `wire.claim` has in addition to the engine's own: the data a controller needs to
        begin."""
        ...

    def accepted_view(self, tx: Connection, operation: OperationRow) -> View:
        """Build the answer to the request that queued the operation."""
        ...

    # What happens to it.

    def on_queued(self, ctx: Context, row: R, operation: OperationRow) -> None: ...

    def on_claimed(self, ctx: Context, row: R, operation: OperationRow) -> R: ...

    def changed_by(self, operation: OperationRow, report: schemas.Progress) -> bool:
        """Whether this report changes the target. If True, the target is locked and `on_progress` is called; if False,
        neither."""
        ...

    def on_progress(self, ctx: Context, row: R, operation: OperationRow, report: schemas.Progress) -> None: ...

    def on_last_report(
        self, ctx: Context, row: R, operation: OperationRow, report: schemas.Complete | schemas.Fail
    ) -> None:
        """Apply the states that the last report has for parts of the target. Called before the operation ends."""
        ...

    def on_succeeded(self, ctx: Context, row: R, operation: OperationRow, report: schemas.Complete) -> None: ...

    def on_failed(self, ctx: Context, row: R, operation: OperationRow, message: str, *, known: bool) -> None:
        """Apply the failure of an operation. `known`: True if the controller reported the failure; False if it is
        unknown how far the operation got."""
        ...

    def on_undone(self, ctx: Context, row: R, operation: OperationRow, message: str, *, why: str) -> None:
        """Apply the end of an operation that changed nothing or was undone completely. `why`: `not_begun`, `canceled`
        or `refused`."""
        ...

    def on_retried(self, ctx: Context, row: R, old: OperationRow, new: OperationRow) -> None: ...

    def on_abandoned(self, ctx: Context, row: R, operation: OperationRow, reason: str) -> None: ...

    # What people may do.

    def refuse_retry(self, row: R, operation: OperationRow, live: Sequence[OperationRow]) -> Problem | None:
        """Return why an operation that ended without success cannot be retried, or None if it can.

        `live`: the queued and running operations with the same lock key.
        """
        ...

    def refuse_abandon(self, row: R, operation: OperationRow) -> Problem | None:
        """Return why an ended operation cannot be abandoned, or None if it can, because its target was left
        half-changed."""
        return WrongMoment(f"The {OPERATION.noun} is {operation.status}: 'abandon' is not possible now.")


# The engine gives each target the rows it read itself, so their type is known only inside the target.
AnyTarget: TypeAlias = Target[Any]
_TARGETS: dict[str, AnyTarget] = {}


def register(target: AnyTarget) -> None:
    _TARGETS[target.kind] = target


def registered() -> list[AnyTarget]:
    return list(_TARGETS.values())


def target_of(operation: OperationRow) -> AnyTarget:
    return _TARGETS[operation.target_kind]


# --- what the operations with one lock key are about, for rooms that keep rows of it without knowing its kind:
# secrets, credentials and teardown records belong to something that runs in a project; its own room registers a reader

SubjectId = NewType("SubjectId", str)


@dataclass(frozen=True)
class Subject:
    id: SubjectId  # the lock key of its operations
    tenant_id: str
    project_id: str
    name: str
    app_slug: str
    version: str
    ended: bool  # it was deleted: nothing new is kept for it
    facts: Mapping[str, JsonValue]  # what each event about it says


class SubjectReader(Protocol):
    def find(self, tx: Connection, project_id: str, subject_id: str, *, lock: bool = False) -> Subject | None:
        """Return the subject with this id, or None. `lock`: the subject does not change until the transaction ends."""
        ...

    def names(self, tx: Connection, subject_ids: Sequence[str]) -> Mapping[SubjectId, str]:
        """Return the names of those subjects that exist, by id and sorted by name."""
        ...


_SUBJECT_READERS: list[SubjectReader] = []


def register_subjects(reader: SubjectReader) -> None:
    _SUBJECT_READERS.append(reader)


def find_subject(tx: Connection, project_id: str, subject_id: str, *, lock: bool = False) -> Subject | None:
    """Return the subject with this id from the first registered reader that has it, or None."""
    for reader in _SUBJECT_READERS:
        if (found := reader.find(tx, project_id, subject_id, lock=lock)) is not None:
            return found
    return None


def subject_names(tx: Connection, subject_ids: Sequence[str]) -> dict[SubjectId, str]:
    found: dict[SubjectId, str] = {}
    for reader in _SUBJECT_READERS:
        found |= reader.names(tx, subject_ids)
    return found
