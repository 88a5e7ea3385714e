"""The options commands share. Each takes `common: Common = Common()`, or one of its kinds.

`Looking` is for commands that only read: they can be watched. `Changing` is for commands that change something: they
can be repeated safely under an idempotency key. A test reads what a command sends and names the kind it needs.
`Destroying` is for those in destructive.py: they ask for a confirmation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

Output = Literal["table", "json", "yaml"]


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    output: Annotated[Output, Parameter(name=["--output", "-o"])] = "table"
    "A table for people, JSON or YAML for scripts."

    project: Annotated[str | None, Parameter(name=["--project", "-p"], show_default=False)] = None
    "Name or id of the project; GPUAAS_PROJECT, or the only one you can see, if left out."

    api: Annotated[str | None, Parameter(show_default=False)] = None
    "Address of the platform; GPUAAS_API, or the one you signed in to, if left out."

    context: Annotated[str | None, Parameter(show_default=False)] = None
    "Which of your platforms, see `gpuaas context list`; GPUAAS_CONTEXT, or the current one, if left out."

    @property
    def json(self) -> bool:
        """Data for scripts; show.as_json writes it in the format that was asked for."""
        return self.output != "table"


@Parameter(name="*")
@dataclass(frozen=True)
class Looking(Common):
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative=(), show_default=False)] = False
    "Look again and again until you press Ctrl-C; in a pipe, print whenever something changed."

    every: Annotated[float, Parameter(name="--every", show_default=False)] = 2.0
    "With --watch: seconds between two looks."


@Parameter(name="*")
@dataclass(frozen=True)
class Changing(Common):
    idempotency_key: Annotated[str | None, Parameter(name="--idempotency-key", show_default=False)] = None
    "A name for this one intention (16 characters or more): run again under it, the command acts once."


@Parameter(name="*")
@dataclass(frozen=True)
class Destroying(Changing):
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative=(), show_default=False)] = False
    "Do not ask. Required without a terminal."


Flag = Parameter(negative=(), show_default=False)
Many = Parameter(negative=(), show_default=False)

# What many commands are told, with its words.
Instance = Annotated[str, Parameter(help="Name or id.")]
Member = Annotated[str, Parameter(help="component/number (worker/0), or its id.")]
Operation = Annotated[str, Parameter(help="Its id, or an instance's name: its newest operation, also of a member.")]
Reason = Annotated[str | None, Parameter(help="Why, for the record.")]
Tenant = Annotated[
    str | None, Parameter(help="Name or id of the tenant; not needed if you belong to one only.", show_default=False)
]
NoWait = Annotated[
    bool,
    Parameter(
        negative="--wait",
        show_default=False,
        help="Return as soon as the platform has accepted it; --wait, the default, sees it to its end.",
    ),
]
