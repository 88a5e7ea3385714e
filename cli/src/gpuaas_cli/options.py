"""The options every command has. Each command takes `common: Common = Common()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])] = "table"
    "A table for people, or JSON for scripts."

    project: Annotated[str | None, Parameter(name=["--project", "-p"], show_default=False)] = None
    "Name or id of the project; GPUAAS_PROJECT, or the only one you can see, if left out."

    api: Annotated[str | None, Parameter(show_default=False)] = None
    "Address of the platform; GPUAAS_API, or the one you signed in to, if left out."

    @property
    def json(self) -> bool:
        return self.output == "json"


Flag = Parameter(negative=(), show_default=False)
Many = Parameter(negative=(), show_default=False)
