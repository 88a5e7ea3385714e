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
    "Output format: a table for people, JSON or YAML for scripts."

    project: Annotated[str | None, Parameter(name=["--project", "-p"], show_default=False)] = None
    "Name or id of the project. Default: GPUAAS_PROJECT, or your only project."

    api: Annotated[str | None, Parameter(show_default=False)] = None
    "Address of the platform. Default: GPUAAS_API, or the platform you signed in to."

    context: Annotated[str | None, Parameter(show_default=False)] = None
    "Name of a context, see `gpuaas context list`. Default: GPUAAS_CONTEXT, or the current context."

    @property
    def json(self) -> bool:
        """Return True if the output format is JSON or YAML; show.as_json prints the requested format."""
        return self.output != "table"


@Parameter(name="*")
@dataclass(frozen=True)
class Looking(Common):
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative=(), show_default=False)] = False
    "Refresh the output until Ctrl-C; in a pipe, print the output again when it changes."

    every: Annotated[float, Parameter(name="--every", show_default=False)] = 2.0
    "With --watch: seconds between two refreshes."


@Parameter(name="*")
@dataclass(frozen=True)
class Changing(Common):
    idempotency_key: Annotated[str | None, Parameter(name="--idempotency-key", show_default=False)] = None
    "A key of at least 16 characters: a command that is repeated with the same key takes effect only once."


@Parameter(name="*")
@dataclass(frozen=True)
class Destroying(Changing):
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative=(), show_default=False)] = False
    "Do not ask for confirmation. Required without a terminal."


Flag = Parameter(negative=(), show_default=False)
Many = Parameter(negative=(), show_default=False)

# Arguments of many commands, with their help.
Instance = Annotated[str, Parameter(help="Name or id of the instance.")]
Member = Annotated[str, Parameter(help="The member: COMPONENT/NUMBER (worker/0) or id.")]
Operation = Annotated[
    str, Parameter(help="Id of the operation; or name of an instance, for its newest operation (also of a member).")
]
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
        help="Return as soon as the platform has accepted the request. Default: --wait, until the operation has ended.",
    ),
]
