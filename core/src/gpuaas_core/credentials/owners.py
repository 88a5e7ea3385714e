"""Finds the instance that owns a secret or uses a credential:
by the instance's id, or as the target of a claimed operation."""

from sqlalchemy import Connection

from ..authz.context import Context
from ..kit.problems import NotFound
from ..operations.claims import held_with_target
from ..operations.rows import OperationRow
from ..operations.targets import Subject, find_subject


def owner(ctx: Context, project_id: str, instance_id: str) -> Subject:
    """Lock and return the instance, or raise NotFound.
    The lock prevents concurrent changes of its secrets and bindings."""
    return read_owner(ctx.tx, project_id, instance_id, lock=True)


def claimed(ctx: Context, project_id: str, operation_id: str, epoch: int) -> tuple[OperationRow, Subject]:
    """Lock the operation, and return it with its instance, if the caller holds the claim with this epoch;
    otherwise raise an error."""
    operation, _, _ = held_with_target(ctx, project_id, operation_id, epoch)
    return operation, read_owner(ctx.tx, project_id, operation.lock_key)


def read_owner(tx: Connection, project_id: str, instance_id: str, *, lock: bool = False) -> Subject:
    found = find_subject(tx, project_id, instance_id, lock=lock)
    if found is None:
        raise NotFound("There is no such instance in this project.")
    return found
