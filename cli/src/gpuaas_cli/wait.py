"""Waits for an operation and says how it ended, in words. Used by deploy, decommission, retry, watch and batches."""

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
    """Show the operation until it ends; 0 if it ended well, 9 if not."""
    client, operation, instance = at.client, accepted.operation, accepted.instance
    with view(_title(operation, instance), json=json) as shown:
        try:
            for moment in moments(client, at.project_id, operation.id, after=after, on_line=shown.line):
                shown.saw(moment)
        except KeyboardInterrupt:
            return leave(instance.name)
    return say_end(client, at.project_id, operation.id, instance.id, json=json)


def say_end(client: Client, project_id: str, operation_id: str, instance_id: str, *, json: bool) -> int:
    operation = client.get_operation(project_id, operation_id)
    instance = client.get_instance(project_id, instance_id)
    if json:
        show.as_json({"instance": instance, "operation": operation})
    elif operation.status == "succeeded":
        _say_good(operation, instance)
    if operation.status == "succeeded":
        return failures.OK
    say_bad(operation, instance)
    return failures.ENDED_BADLY


def _title(operation: OperationView, instance: InstanceView) -> str:
    doing = DOING.get(operation.kind, operation.kind.replace("_", " ").capitalize() + ":")
    return f"{doing} {instance.name} ({instance.app_slug} {instance.version})"


def _say_good(operation: OperationView, instance: InstanceView) -> None:
    print()
    if operation.kind == "decommission":
        print(f"{instance.name} is gone. {_sentence(instance)}".strip())
        say_next((f"gpuaas operation certificate {operation.id}", "what was proven of each machine"))
        return
    if operation.member_id:  # the instance's own sentence is as old as the last look at it
        print(operation.progress.message)
        say_next((f"gpuaas member list {instance.name}", "how its members are"), *_certificates(operation))
        return
    print(f"{instance.name} is {instance.health.status}: {_sentence(instance)}")
    say_next(
        ("gpuaas access " + instance.name, "how to use it"),
        ("gpuaas instance show " + instance.name, "all there is to know"),
        ("gpuaas instance decommission " + instance.name, "take it down again"),
    )


def _certificates(operation: OperationView) -> list[tuple[str, str]]:
    if operation.kind not in ("remove_member", "replace_member"):
        return []
    return [(f"gpuaas operation certificate {operation.id}", "what was proven of the machine")]


def say_bad(operation: OperationView, instance: InstanceView) -> None:
    if operation.status == "superseded":
        return _say_superseded(operation, instance)
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
    say_next(
        ("gpuaas operation retry " + operation.id, "try again"),
        ("gpuaas operation show " + operation.id, "look closer"),
        ("gpuaas instance decommission " + instance.name, "give up and clean the hosts"),
        stderr=True,
    )
    return None


def _say_superseded(operation: OperationView, instance: InstanceView) -> None:
    """Somebody asked for something that goes before it: nothing to retry, and nothing went wrong."""
    print(file=sys.stderr)
    sentence = f"{operation.kind} of {instance.name} gave way to a later operation."
    failures.tell(sentence, code=operation.status, correlation_id=operation.correlation_id)
    say_next((f"gpuaas operation show {instance.name}", "the later one"), stderr=True)


def say_next(*commands: tuple[str, str], stderr: bool = False) -> None:
    """What people usually want to do now."""
    wanted = [(there(command), purpose) for command, purpose in commands]
    width = max(len(command) for command, _ in wanted)
    lines = ["", "Next:", *(f"  {command:<{width}}   {purpose}" for command, purpose in wanted)]
    print("\n".join(lines), file=sys.stderr if stderr else sys.stdout)


def leave(instance: str) -> int:
    print("\nThe operation goes on without you.", file=sys.stderr)
    say_next((f"gpuaas instance watch {instance}", "look at it again"), stderr=True)
    return failures.INTERRUPTED


def _sentence(instance: InstanceView) -> str:
    text = instance.health.sentence.strip().removeprefix(f"{instance.name}: ")
    return text if not text or text.endswith((".", "!", "?")) else text + "."
