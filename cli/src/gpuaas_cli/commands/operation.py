"""`gpuaas operation list|show|certificate|retry|cancel|release-claim|abandon`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import adapter_detail, show
from ..certificates import print_certificate, unaltered
from ..operation_stream import sequence_now
from ..options import Changing, Destroying, Flag, Looking, NoWait, Operation, Reason
from ..session import Session, session
from ..wait import say_next
from .instance import follow

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import OperationView

app = App(name="operation", help="What is being done, what was done, and how to go on after a failure.")


@app.command(name="list")
def list_operations(
    *, instance: str | None = None, status: str | None = None, limit: int = 20, common: Looking = Looking()
) -> None:
    """The project's operations, newest first.

    Example: gpuaas operation list
    Example: gpuaas operation list --instance train --status failed

    Parameters
    ----------
    instance
        Only those of this instance (name or id).
    status
        Only those that are queued, running, succeeded, failed, canceled, superseded or needs_attention.
    limit
        How many at most.
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
    return show.table(("WHAT", "INSTANCE", "STATUS", "PROGRESS", "ASKED", "ID"), rows)


def _names(at: Session) -> dict[str, str]:
    """People know instances by name, operations know them by id."""
    return {i.id: i.name for i in at.client.every(sdk.Calls.list_instances, at.project_id, deleted=True)}


def _progress(o: OperationView) -> str:
    return o.error.message if o.error and o.status != "succeeded" else f"{_count(o)} {o.progress.message}".strip()


def _count(o: OperationView) -> str:
    return f"{o.progress.step}/{o.progress.of}" if o.progress.of else ""


@app.command(name="show")
def show_operation(operation: Operation, /, *, common: Looking = Looking()) -> None:
    """One operation: how far it is, or why it failed and what to do about it.

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
            ("what", f"{found.kind} ({found.target.app_slug} {found.target.version})"),
            ("status", found.status),
            ("progress", _count(found) if error else _progress(found)),
            ("error", error.message if error else ""),
            ("what to do", error.way_out if error else ""),
            ("code", error.code if error else ""),
            ("stuck", f"{found.stuck.message} ({show.ago(found.stuck.since)})" if found.stuck else ""),
            ("possible", ", ".join(a.action for a in found.available_actions if a.allowed)),
            ("controller", found.claimed_by or ""),
            ("retry of", found.retry_of or ""),
            ("asked", show.ago(found.created_at)),
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
    """What was proven of each machine that a decommission, remove or replace left.

    Exit 1 if there is none, or if one was changed.

    Example: gpuaas operation certificate op_01hx…
    Example: gpuaas operation certificate train -o json > train-is-gone.json
    """
    with session(common) as at:
        about = at.operation(operation)
        call = sdk.Calls.list_departure_certificates
        found = list(at.client.every(call, at.project_id, operation_id=about.id))
    if common.json:
        show.as_json(found)
    elif not found:
        why = f" {about.error.message}" if about.error else ""
        print(f"There is none: the {about.kind} {about.id} is {about.status}.{why}")
        if about.error:
            say_next((f"gpuaas operation retry {about.id}", about.error.way_out))
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
    """Try a failed operation again, and watch it.

    Example: gpuaas operation retry op_01hx…
    Example: gpuaas operation retry train

    Parameters
    ----------
    anyway
        Even if the app refuses to after repeated failures.
    """
    with session(common) as at:
        found = at.operation(operation)
        before = sequence_now(at.client, at.project_id)
        accepted = at.client.retry_operation(at.project_id, found.id, try_anyway=anyway or None)
        return follow(at, accepted, no_wait, common, after=before)


@app.command
def cancel(operation: Operation, /, *, common: Changing = Changing()) -> None:
    """Ask a running operation to stop. It ends at its next good moment, and says what it left behind.

    Example: gpuaas operation cancel train
    """
    with session(common) as at:
        found = at.client.cancel_operation(at.project_id, at.operation(operation).id)
    if common.json:
        return show.as_json(found)
    if found.status == "canceled":
        print(f"{found.kind} is canceled.")
        return None
    print(f"{found.kind} was asked to stop; it is {found.status} until it does.")
    return say_next((f"gpuaas operation show {found.id}", "see whether it has"))


@app.command(name="release-claim")
def release_claim(operation: Operation, /, *, reason: Reason = None, common: Changing = Changing()) -> None:
    """Release the claim of the controller that holds an operation; it waits to be claimed again.

    Example: gpuaas operation release-claim train --reason "the controller hangs"
    """
    with session(common) as at:
        found = at.client.release_claim(at.project_id, at.operation(operation).id, reason=reason)
    if common.json:
        return show.as_json(found)
    print(f"{found.kind} waits for a controller again (epoch {found.claim_epoch}).")
    return None


@app.command
def abandon(operation: Operation, /, *, reason: str, common: Destroying = Destroying()) -> None:
    """Give an operation up without evidence. A teardown counts as done and leaves orphan records.

    Example: gpuaas operation abandon train --reason "the rack is gone"

    Parameters
    ----------
    reason
        Why; it stays in the audit trail.
    """
    with session(common) as at:
        found = at.client.abandon_operation(at.project_id, at.operation(operation).id, reason=reason)
    if common.json:
        return show.as_json(found)
    print(f"{found.kind} was given up; it is {found.status}.")
    return say_next(("gpuaas orphan list", "what may be left on machines"))
