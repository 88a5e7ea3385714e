"""`gpuaas operation list|show|certificate|retry|cancel|cancel-batch|release-claim|abandon`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import adapter_detail, show
from ..certificates import print_certificate, unaltered
from ..operation_stream import sequence_now
from ..options import Batch, Changing, Destroying, Flag, Looking, NoWait, Operation, Reason
from ..session import Session, session
from ..wait import print_next
from .instance import follow

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import OperationView

app = App(name="operation", help="Show, retry, cancel and abandon operations on instances and members.")


@app.command(name="list")
def list_operations(
    *, instance: str | None = None, status: str | None = None, limit: int = 20, common: Looking = Looking()
) -> None:
    """List the operations of the project, newest first.

    Example: gpuaas operation list
    Example: gpuaas operation list --instance train --status failed

    Parameters
    ----------
    instance
        List only operations of this instance (name or id).
    status
        List only operations with this status: queued, running, succeeded, failed, canceled, superseded or
        needs_attention.
    limit
        Maximum number of operations.
    """
    with session(common) as at:
        about = at.instance(instance, deleted=True).id if instance else None
        found = list(at.client.every(sdk.Calls.list_operations, at.project_id, instance_id=about, status=status))
        names = {} if common.json else _names(at)
    found = sorted(found, key=lambda o: o.created_at, reverse=True)[:limit]
    if common.json:
        return show.as_json(found)
    if not found:
        print("No operations.")
        return None
    rows = [
        (o.kind, names.get(o.instance_id, o.instance_id), o.status, _progress(o), show.ago(o.created_at), o.id)
        for o in found
    ]
    return show.table(("KIND", "INSTANCE", "STATUS", "PROGRESS", "REQUESTED", "ID"), rows)


def _names(at: Session) -> dict[str, str]:
    """Return instance names by id, for the table."""
    return {i.id: i.name for i in at.client.every(sdk.Calls.list_instances, at.project_id, deleted=True)}


def _progress(o: OperationView) -> str:
    return o.error.message if o.error and o.status != "succeeded" else f"{_count(o)} {o.progress.message}".strip()


def _count(o: OperationView) -> str:
    return f"{o.progress.step}/{o.progress.of}" if o.progress.of else ""


@app.command(name="show")
def show_operation(operation: Operation, /, *, common: Looking = Looking()) -> None:
    """Show an operation: its progress, or its error and what to do.

    Example: gpuaas operation show op_01hx…
    Example: gpuaas operation show train
    """
    with session(common) as at:
        found = at.operation(operation)
    if common.json:
        return show.as_json(found)
    error = found.error
    show.facts(
        [
            ("kind", f"{found.kind} ({found.target.app_slug} {found.target.version})"),
            ("status", found.status),
            ("progress", _count(found) if error else _progress(found)),
            ("error", error.message if error else ""),
            ("what to do", error.way_out if error else ""),
            ("code", error.code if error else ""),
            ("stuck", f"{found.stuck.message} ({show.ago(found.stuck.since)})" if found.stuck else ""),
            ("allowed actions", ", ".join(a.action for a in found.available_actions if a.allowed)),
            ("controller", found.claimed_by or ""),
            ("retry of", found.retry_of or ""),
            ("requested", show.ago(found.created_at)),
            ("ended", show.ago(found.finished_at)),
            ("instance", found.instance_id),
            ("id", found.id),
            ("correlation", found.correlation_id),
        ]
    )
    adapter_detail.preflight(found.adapter_detail)
    if error:
        adapter_detail.failure(found.adapter_detail)


@app.command
def certificate(operation: Operation, /, *, common: Looking = Looking()) -> int:
    """Print the departure certificates of a decommission, remove or replace: proof that its nodes are clean.

    Exit code 1 if the operation has no certificate, or if a certificate was altered.

    Example: gpuaas operation certificate op_01hx…
    Example: gpuaas operation certificate train -o json > train-certificate.json
    """
    with session(common) as at:
        about = at.operation(operation)
        call = sdk.Calls.list_departure_certificates
        found = list(at.client.every(call, at.project_id, operation_id=about.id))
    if common.json:
        show.as_json(found)
    elif not found:
        why = f" {about.error.message}" if about.error else ""
        print(f"No certificate: the {about.kind} {about.id} is {about.status}.{why}")
        if about.error:
            print_next((f"gpuaas operation retry {about.id}", about.error.way_out))
    else:
        for one in found:
            print_certificate(one)
    return 0 if found and all(unaltered(one) is not False for one in found) else 1


@app.command
def retry(
    operation: Operation,
    /,
    *,
    anyway: Annotated[bool, Flag] = False,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int:
    """Retry a failed operation, and show the progress.

    Example: gpuaas operation retry op_01hx…
    Example: gpuaas operation retry train

    Parameters
    ----------
    anyway
        Retry even if the app refuses after repeated failures.
    """
    with session(common) as at:
        found = at.operation(operation)
        before = sequence_now(at.client, at.project_id)
        accepted = at.client.retry_operation(at.project_id, found.id, try_anyway=anyway or None)
        return follow(at, accepted, no_wait, common, after=before)


@app.command
def cancel(operation: Operation, /, *, common: Changing = Changing()) -> None:
    """Cancel an operation. A running operation stops at its next safe point.

    Example: gpuaas operation cancel train
    """
    with session(common) as at:
        found = at.client.cancel_operation(at.project_id, at.operation(operation).id)
    if common.json:
        return show.as_json(found)
    if found.status == "canceled":
        print(f"The {found.kind} is canceled.")
        return None
    print(f"Asked the {found.kind} to stop. It is {found.status} until then.")
    return print_next((f"gpuaas operation show {found.id}", "its current status"))


@app.command(name="cancel-batch")
def cancel_batch(batch: Batch, /, *, common: Changing = Changing()) -> None:
    """Cancel every operation of a batch that is still in progress. Finished operations are not changed.

    Example: gpuaas operation cancel-batch batch_01hx…
    """
    with session(common) as at:
        found = at.client.cancel_batch(at.project_id, batch)
    if common.json:
        return show.as_json(found)
    for one in found.operations:
        print(f"{one.kind} {one.id} is {one.status}" + (", asked to stop." if one.cancel_requested else "."))
    return None


@app.command(name="release-claim")
def release_claim(operation: Operation, /, *, reason: Reason = None, common: Changing = Changing()) -> None:
    """Release an operation from its controller. The operation is queued until a controller claims it.

    Example: gpuaas operation release-claim train --reason "the controller hangs"
    """
    with session(common) as at:
        found = at.client.release_claim(at.project_id, at.operation(operation).id, reason=reason)
    if common.json:
        return show.as_json(found)
    print(f"Released the {found.kind}. It is queued again (epoch {found.claim_epoch}).")
    return None


@app.command
def abandon(operation: Operation, /, *, reason: str, common: Destroying = Destroying()) -> None:
    """Force an operation to end, although nothing proves what it did on the nodes.

    An abandoned teardown counts as done and leaves an orphan record for each node.

    Example: gpuaas operation abandon train --reason "the rack is gone"

    Parameters
    ----------
    reason
        Recorded in the audit trail.
    """
    with session(common) as at:
        found = at.client.abandon_operation(at.project_id, at.operation(operation).id, reason=reason)
    if common.json:
        return show.as_json(found)
    print(f"Abandoned the {found.kind}. It is {found.status}.")
    return print_next(("gpuaas orphan list", "nodes that may not be clean"))
