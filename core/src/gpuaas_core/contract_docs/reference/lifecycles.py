"""Generates the page of lifecycles: a diagram of each, and its transitions as a searchable list."""

from ...artifacts.states import ARTIFACT, DELIVERY, SOURCE
from ...capacity.states import ALLOCATION, NODE
from ...catalog.states import VERSION
from ...credentials.states import CREDENTIAL
from ...iam.states import BREAK_GLASS
from ...instances.states import INSTANCE, MEMBER
from ...kit.lifecycle import Lifecycle
from ...machine_access.states import AUTHORITY
from ...node_tasks.states import TASK
from ...operations.states import OPERATION
from .markdown import code, item

HEAD = """# Lifecycles

A resource is in exactly one state. An action that the state does not allow is answered with 409 `wrong_state` and the
actions that are possible; resources show the same in `available_actions`. Each list below maps an action to the next
state. Arrows that lead back to the same state (a repeated report) are left out of the drawings and kept in the lists.
"""

LIVES: dict[str, tuple[Lifecycle, str]] = {
    "Instance": (INSTANCE, "An app deployed in a project. People request; the app's controller reports what runs."),
    "Member": (MEMBER, "One component of an instance on one allocation."),
    "Operation": (OPERATION, "One piece of work on an instance. It ends once, and a retry is a new operation."),
    "Allocation": (ALLOCATION, "A project's hold on a node. It is active once the node itself trusts it."),
    "Node": (NODE, "An enrolled machine. While it reports, people decide its state; silence changes no decision."),
    "Task": (TASK, "Work for a node's agent. It begins once the node has renewed the task's lease."),
    "App version": (VERSION, "A release that an app team publishes. Running instances are not affected by its state."),
    "Access credential": (CREDENTIAL, "A key pair of a project. While it rotates, the old version is valid as well."),
    "SSH authority": (
        AUTHORITY,
        "Signs certificates for one tenant, of users or of hosts. One signs; two are trusted.",
    ),
    "Artifact source": (
        SOURCE,
        "A place artifacts come from. A disabled source delivers nothing, pending deliveries included.",
    ),
    "Artifact": (ARTIFACT, "A name and a version for content that never changes."),
    "Delivery": (DELIVERY, "One artifact for one node and one task. It ends after ten minutes at the latest."),
    "Break-glass": (BREAK_GLASS, "A platform administrator inside a tenant, announced to it, for an hour at most."),
}


def page() -> str:
    return HEAD + "".join(_life(title, *life) for title, life in LIVES.items())


def _life(title: str, life: Lifecycle, about: str) -> str:
    listed = "".join(item(f"`{state}`: {_moves(state, row)}") for state, row in life.moves.items())
    return f"\n## {title}\n\n{about}\n\n```mermaid\n{_drawing(life)}```\n\n{listed}"


def _moves(state: str, row: dict[str, str]) -> str:
    if not row:
        return "final"
    again = [action for action, to in row.items() if to == state]
    moves = [f"`{action}` → `{to}`" for action, to in row.items() if to != state]
    return ", ".join([*moves, *([f"{code(again)}: stays"] if again else [])])


def _drawing(life: Lifecycle) -> str:
    lines = ["stateDiagram-v2", "    direction LR", f"    [*] --> {next(iter(life.moves))}"]
    for state, row in life.moves.items():
        arrows: dict[str, list[str]] = {}
        for action, to in row.items():
            if to != state:
                arrows.setdefault(to, []).append(action)
        lines += [f"    {state} --> {to}: {', '.join(actions)}" for to, actions in arrows.items()]
        if life.terminal(state):
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines) + "\n"
