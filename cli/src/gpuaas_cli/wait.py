"""Waits for an operation and prints its result. Used by deploy, decommission, retry, watch and batches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from . import failures, show
from .context_flags import there
from .operation_stream import moments
from .progress import view

if TYPE_CHECKING:
    from gpuaas_sdk import Client
    from gpuaas_sdk.client.models import AcceptedView, InstanceView, OperationView

    from .session import Session

DOING = {"deploy": "Deploying", "decommission": "Decommissioning"}


def wait_for_end(at: Session, accepted: AcceptedView, *, after: int | None, json: bool) -> int:
    """Show the progress of the operation until it ends, then print its result. Returns the exit code: 0 if the
    operation succeeded, 9 if not."""
    client, operation, instance = at.client, accepted.operation, accepted.instance
    with view(_title(operation, instance), json=json) as shown:
        try:
            for moment in moments(client, at.project_id, operation.id, after=after, on_line=shown.line):
                shown.saw(moment)
        except KeyboardInterrupt:
            return leave(instance.name)
    return print_result(client, at.project_id, operation.id, instance.id, json=json)


def print_result(client: Client, project_id: str, operation_id: str, instance_id: str, *, json: bool) -> int:
    operation = client.get_operation(project_id, operation_id)
    instance = client.get_instance(project_id, instance_id)
    if json:
        show.as_json({"instance": instance, "operation": operation})
    elif operation.status == "succeeded":
        _print_success(operation, instance)
    if operation.status == "succeeded":
        return failures.OK
    print_failure(operation, instance)
    return failures.ENDED_BADLY


def _title(operation: OperationView, instance: InstanceView) -> str:
    doing = DOING.get(operation.kind, operation.kind.replace("_", " ").capitalize() + ":")
    return f"{doing} {instance.name} ({instance.app_slug} {instance.version})"


def _print_success(operation: OperationView, instance: InstanceView) -> None:
    print()
    if operation.kind == "decommission":
        print(f"{instance.name} is decommissioned. {_sentence(instance)}".strip())
        print_next((f"gpuaas operation certificate {operation.id}", "proof that its nodes are clean"))
        return
    if operation.member_id:  # the instance's own sentence is as old as its last observation
        print(operation.progress.message)
        print_next((f"gpuaas member list {instance.name}", "the state of its members"), *_certificates(operation))
        return
    print(f"{instance.name} is {instance.health.status}: {_sentence(instance)}")
    print_next(
        ("gpuaas access " + instance.name, "how to use it"),
        ("gpuaas instance show " + instance.name, "details"),
        ("gpuaas instance decommission " + instance.name, "remove it"),
    )


def _certificates(operation: OperationView) -> list[tuple[str, str]]:
    if operation.kind not in ("remove_member", "replace_member"):
        return []
    return [(f"gpuaas operation certificate {operation.id}", "proof that the node is clean")]


def print_failure(operation: OperationView, instance: InstanceView) -> None:
    if operation.status == "superseded":
        return _print_superseded(operation, instance)
    progress, error = operation.progress, operation.error
    where = f" at step {progress.step} of {progress.of}" if progress.of else ""
    ended = {"needs_attention": "needs attention", "failed": "failed", "canceled": "was canceled"}
    how = ended.get(operation.status, f"ended as {operation.status}")
    print(file=sys.stderr)
    why = f" {error.message}" if error else ""
    failures.tell(
        f"{operation.kind} of {instance.name} {how}{where}.{why}",
        error.way_out if error else "",
        code=error.code if error else operation.status,
        correlation_id=operation.correlation_id,
    )
    print_next(
        ("gpuaas operation retry " + operation.id, "retry it"),
        ("gpuaas operation show " + operation.id, "details"),
        ("gpuaas instance decommission " + instance.name, "remove the instance and clean its nodes"),
        stderr=True,
    )
    return None


def _print_superseded(operation: OperationView, instance: InstanceView) -> None:
    """Print that a newer operation superseded this one. It is no failure, and there is nothing to retry."""
    print(file=sys.stderr)
    sentence = f"{operation.kind} of {instance.name} was superseded by a newer operation."
    failures.tell(sentence, code=operation.status, correlation_id=operation.correlation_id)
    print_next((f"gpuaas operation show {instance.name}", "the newer operation"), stderr=True)


def print_next(*commands: tuple[str, str], stderr: bool = False) -> None:
    """Print the commands that usually come next."""
    wanted = [(there(command), purpose) for command, purpose in commands]
    width = max(len(command) for command, _ in wanted)
    lines = ["", "Next:", *(f"  {command:<{width}}   {purpose}" for command, purpose in wanted)]
    print("\n".join(lines), file=sys.stderr if stderr else sys.stdout)


def leave(instance: str) -> int:
    print("\nThe operation continues on the platform.", file=sys.stderr)
    print_next((f"gpuaas instance watch {instance}", "follow it again"), stderr=True)
    return failures.INTERRUPTED


def _sentence(instance: InstanceView) -> str:
    text = instance.health.sentence.strip().removeprefix(f"{instance.name}: ")
    return text if not text or text.endswith((".", "!", "?")) else text + "."
