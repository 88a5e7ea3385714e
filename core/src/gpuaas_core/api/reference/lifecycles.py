"""The lives of things: a drawing, and the same as a table for those who search."""

from ...artifacts.states import ARTIFACT, DELIVERY, SOURCE
from ...capacity.states import ALLOCATION, NODE
from ...catalog.states import VERSION
from ...custody.states import AUTHORITY, CREDENTIAL
from ...instances.states import INSTANCE, MEMBER, OPERATION
from ...kit.lifecycle import Lifecycle
from ...tasks.states import TASK
from ...tenancy.states import BREAK_GLASS
from .markdown import code, table

HEAD = """# Lifecycles

A thing is in exactly one state. An action that the state does not know is answered with 409 `wrong_state` and what is
possible instead; resources show the same in `available_actions`. Arrows that lead back to the same state (a repeated
report) are left out of the drawings and kept in the tables.
"""

LIVES: dict[str, tuple[Lifecycle, str]] = {
    "Instance": (INSTANCE, "An app deployed in a project. People ask; what runs is reported by the app's controller."),
    "Member": (MEMBER, "One component of an instance on one allocation."),
    "Operation": (OPERATION, "One piece of work on an instance. It ends once, and a retry is a new operation."),
    "Allocation": (ALLOCATION, "A machine held for a project. It is active once the machine itself trusts it."),
    "Node": (NODE, "An enrolled machine. While it reports it is what people decided; its silence changes no decision."),
    "Task": (TASK, "Something a machine's agent is to do. It begins once the machine has renewed its lease on it."),
    "App version": (VERSION, "What an app team publishes. What runs stays, whatever becomes of its version."),
    "Access credential": (CREDENTIAL, "A key pair of a project. While it rotates, the old version is good as well."),
    "SSH authority": (
        AUTHORITY,
        "Signs certificates for one tenant, of users or of hosts. One signs; two are trusted.",
    ),
    "Artifact source": (SOURCE, "A place artifacts may come from. Disabled, it delivers nothing, promised or not."),
    "Artifact": (ARTIFACT, "A name and a version for content that never changes."),
    "Delivery": (DELIVERY, "One artifact for one machine and one task; without an end it is over after ten minutes."),
    "Break-glass": (BREAK_GLASS, "Somebody of the platform inside a tenant, announced to it and for an hour at most."),
}


def page() -> str:
    return HEAD + "".join(_life(title, *life) for title, life in LIVES.items())


def _life(title: str, life: Lifecycle, about: str) -> str:
    rows = [(f"`{state}`", _moves(state, row)) for state, row in life.moves.items()]
    return (
        f"\n## {title}\n\n{about}\n\n```mermaid\n{_drawing(life)}```\n\n{table(('state', 'action → next state'), rows)}"
    )


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
