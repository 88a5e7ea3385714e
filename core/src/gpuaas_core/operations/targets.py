"""What the engine asks of a target, and the register of targets.

A target kind is code of the core: a room implements `Target`, and `api/` registers it when the process starts. Nothing
registers one over the API. `R` is what the target's room reads of it; the engine hands it back and never opens it.

Lock order: the target's row, then the operation's row, then the heads of events and audit. Whoever takes an operation
first (claims, the watchdog) only tries the target's lock and passes the operation over when it is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection

from ..authz.context import Context
from ..kit.lifecycle import WrongMoment
from ..kit.problems import Problem
from ..kit.wire import View
from . import schemas
from .rows import Json, OperationRow
from .states import OPERATION

R = TypeVar("R")
ClaimReport = schemas.Progress | schemas.Complete | schemas.Fail


@dataclass(frozen=True, kw_only=True)
class OperationKind:
    """What the engine knows of a kind of operation."""

    undoable: bool = True  # a controller may report that it failed and changed nothing
    deadline_s: int = 3600
    phase_s: int = 300


@dataclass(frozen=True)
class Wire:
    """What this target's operations look like on the wire: the engine's own models, with the target's fields."""

    operation: type[schemas.OperationView]
    claim: type[schemas.ClaimView]
    accepted: type[View]
    progress: type[schemas.Progress] = schemas.Progress
    complete: type[schemas.Complete] = schemas.Complete
    fail: type[schemas.Fail] = schemas.Fail


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be queued, as the target says it: where it is, who pays, what it excludes."""

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

    def lock(self, tx: Connection, operation: OperationRow) -> R:
        """The target, locked: nothing of it changes until the transaction ends."""
        ...

    def try_lock(self, tx: Connection, operation: OperationRow) -> R | None:
        """The same without waiting; none: another transaction has it."""
        ...

    def order(self, tx: Connection, row: R, kind: str, params: Json | None, details: Json | None) -> Order: ...

    def facts(self, row: R, operation: OperationRow) -> dict[str, Any]:
        """What each event of the operation says of its target."""
        ...

    def allocations(self, tx: Connection, row: R) -> set[str]:
        """The allocations the target is on: its controller gets access to these and no others."""
        ...

    def refers_to(self, operation_id: ColumnElement[str]) -> ColumnElement[bool]:
        """In SQL: a target that exists still names this operation, so it is not deleted with the old ones."""
        ...

    # What it looks like.

    def operation_details(self, operation: OperationRow) -> dict[str, Any]:
        """The fields that `wire.operation` has beside the engine's own."""
        ...

    def controller_view(self, tx: Connection, row: R, operation: OperationRow) -> dict[str, Any]:
        """The fields that `wire.claim` has beside the engine's own: what a controller needs to begin."""
        ...

    def accepted_view(self, tx: Connection, operation: OperationRow) -> View:
        """The answer to what people asked for."""
        ...

    # What happens to it.

    def on_queued(self, ctx: Context, row: R, operation: OperationRow) -> None: ...

    def on_claimed(self, ctx: Context, row: R, operation: OperationRow) -> R: ...

    def changed_by(self, operation: OperationRow, report: schemas.Progress) -> bool:
        """This report changes the target, so it has to be locked; otherwise `on_progress` is not called."""
        ...

    def on_progress(self, ctx: Context, row: R, operation: OperationRow, report: schemas.Progress) -> None: ...

    def on_last_report(
        self, ctx: Context, row: R, operation: OperationRow, report: schemas.Complete | schemas.Fail
    ) -> None:
        """Before the operation ends: what the last report says of parts of the target."""
        ...

    def on_succeeded(self, ctx: Context, row: R, operation: OperationRow, report: schemas.Complete) -> None: ...

    def on_failed(self, ctx: Context, row: R, operation: OperationRow, message: str, *, known: bool) -> None:
        """`known`: the controller said so. Otherwise no one knows how far it got."""
        ...

    def on_undone(self, ctx: Context, row: R, operation: OperationRow, message: str, *, why: str) -> None:
        """Nothing was done, or all of it was undone. `why`: `not_begun`, `canceled` or `refused`."""
        ...

    def on_retried(self, ctx: Context, row: R, old: OperationRow, new: OperationRow) -> None: ...

    def on_abandoned(self, ctx: Context, row: R, operation: OperationRow, reason: str) -> None: ...

    # What people may do.

    def refuse_retry(self, tx: Connection, row: R, operation: OperationRow) -> Problem | None:
        """Asked of an operation that has ended without success."""
        ...

    def refuse_abandon(self, tx: Connection, row: R, operation: OperationRow) -> Problem | None:
        """Asked of an operation that has ended: only one that left its target half way can still be given up."""
        return WrongMoment(f"The {OPERATION.noun} is {operation.status}: 'abandon' is not possible now.")


AnyTarget = Target[Any]
_TARGETS: dict[str, AnyTarget] = {}


def register(target: AnyTarget) -> None:
    _TARGETS[target.kind] = target


def registered() -> list[AnyTarget]:
    return list(_TARGETS.values())


def target_of(operation: OperationRow) -> AnyTarget:
    return _TARGETS[operation.target_kind]
