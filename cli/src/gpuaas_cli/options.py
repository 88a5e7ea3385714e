"""The shared options of commands. Each command takes `common: Common = Common()`, or a subclass.

`Looking` is for commands that only read; it adds --watch. `Changing` is for commands that change something; it adds an
idempotency key for safe repetition. `Destroying` is for the commands in destructive.py, which ask for confirmation. A
test checks that each command has the class that fits its requests.
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
    "Name or id of the project. Default: GPUAAS_PROJECT, or your only project."

    api: Annotated[str | None, Parameter(show_default=False)] = None
    "Address of the platform. Default: GPUAAS_API, or the platform you signed in to."

    context: Annotated[str | None, Parameter(show_default=False)] = None
    "A context of `gpuaas context list`. Default: GPUAAS_CONTEXT, or the current context."

    @property
    def json(self) -> bool:
        """Return True if the output format is JSON or YAML; show.as_json prints the requested format."""
        return self.output != "table"


@Parameter(name="*")
@dataclass(frozen=True)
class Looking(Common):
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative=(), show_default=False)] = False
    "Refresh until Ctrl-C; in a pipe, print when the output changes."

    every: Annotated[float, Parameter(name="--every", show_default=False)] = 2.0
    "With --watch: seconds between two refreshes."


@Parameter(name="*")
@dataclass(frozen=True)
class Changing(Common):
    idempotency_key: Annotated[str | None, Parameter(name="--idempotency-key", show_default=False)] = None
    "A key of 16 characters or more: a command repeated with the same key takes effect once."


@Parameter(name="*")
@dataclass(frozen=True)
class Destroying(Changing):
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative=(), show_default=False)] = False
    "Do not ask. Required without a terminal."


Flag = Parameter(negative=(), show_default=False)
Many = Parameter(negative=(), show_default=False)

# Arguments of many commands, with their help.
Instance = Annotated[str, Parameter(help="Name or id.")]
Member = Annotated[str, Parameter(help="COMPONENT/NUMBER (worker/0), or its id.")]
Operation = Annotated[str, Parameter(help="Its id, or an instance's name: its newest operation, also of a member.")]
Batch = Annotated[str, Parameter(help="The batch id that a request for several members returned.")]
Reason = Annotated[str | None, Parameter(help="Recorded in the audit trail.")]
Tenant = Annotated[
    str | None, Parameter(help="Name or id of the tenant; not needed if you belong to one tenant.", show_default=False)
]
NoWait = Annotated[
    bool,
    Parameter(
        negative="--wait",
        show_default=False,
        help="Return when the platform has accepted the request; --wait, the default, waits for the end.",
    ),
]
