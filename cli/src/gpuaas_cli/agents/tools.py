"""The tools of an agent: find, describe, plan, apply, watch, triage, explain. server.py serves them.

A tool takes plain arguments and returns plain data; errors are raised as in every command. Each call reads the stored
token, so that a new sign-in needs no restart. Each call has its own correlation id.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from gpuaas_sdk.client.errors import Denied, NotFound

from .. import failures
from ..error_codes import explained
from ..failures import CliError
from ..operation_stream import LIVE, sequence_now
from ..options import Common
from ..session import Session, session
from .plans import LIFE_S, Plan, Plans
from .registry import CHANGE, LIST, PLANNERS, READ, Operation, operations

PAGE = 50  # items of a list, unless the agent asks for more
WATCH_S, LONGEST_WATCH_S, POLL_S = 30.0, 120.0, 1.0
READ_ONLY = "This server is read-only. The user can start it with `gpuaas mcp --allow-changes`."
ARGUMENTS = {
    "type": "object",
    "description": "See `operations` with this name; project_id and tenant_id are optional.",
}


@dataclass(frozen=True)
class Tool:
    name: str
    sentence: str
    run: Callable[..., Any]
    properties: dict[str, dict[str, Any]]
    required: tuple[str, ...] = ()
    changes: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        shape = {"type": "object", "properties": self.properties, "required": list(self.required)}
        return {**shape, "additionalProperties": False}


class Tools:
    def __init__(self, common: Common, *, allow_changes: bool, plans: Plans | None = None) -> None:
        self._common, self._may, self._plans = common, allow_changes, plans or Plans()
        made = self._table()
        self._known = {tool.name: tool for tool in made}

    def listed(self) -> list[Tool]:
        """Return the tools that the server offers. A read-only server offers only tools that change nothing."""
        return [tool for tool in self._known.values() if self._may or not tool.changes]

    def run(self, name: str, arguments: dict[str, Any]) -> Any:
        tool = self._known.get(name)
        if tool is None:
            raise CliError(f"There is no tool {name}.", f"Tools: {', '.join(self._known)}.", failures.USAGE)
        if tool.changes and not self._may:
            raise CliError("Nothing was changed: this server is read-only.", READ_ONLY, failures.DENIED)
        _check(tool.name, arguments, set(tool.properties), tool.required)
        return tool.run(**arguments)

    # --- the tools

    def operations(self, name: str = "", about: str = "") -> Any:
        if name:
            one = _named(name)
            return {"name": one.name, "kind": one.kind, "what": one.sentence, "arguments": one.schema}
        found = [one for one in operations().values() if about.lower() in f"{one.name} {one.sentence}".lower()]
        return [{"name": o.name, "kind": o.kind, "what": o.sentence, "needs": list(o.required)} for o in found]

    def find(self, what: str, arguments: dict[str, Any] | None = None) -> Any:
        return self._read(what, arguments or {}, LIST, {"limit": PAGE})

    def describe(self, what: str, arguments: dict[str, Any] | None = None) -> Any:
        return self._read(what, arguments or {}, READ, {})

    def plan(self, operation: str, arguments: dict[str, Any] | None = None) -> Any:
        one = _named(operation, CHANGE)
        with session(self._common) as at:
            filled = _filled(at, one, arguments or {})
            effects = None
            if operation in PLANNERS:
                planned = {key: value for key, value in filled.items() if key != "reason"}
                effects = getattr(at.client, PLANNERS[operation])(*_places(one, planned), **_named_only(one, planned))
            made = self._plans.make(operation, one.request(filled))
        return _plan_view(one, made, effects) | ({} if self._may else {"note": READ_ONLY})

    def apply(self, plan_id: str) -> Any:
        with session(self._common) as at:
            plan, now = self._plans.apply(plan_id, at.client.send)
        facts = {"plan_id": plan.id, "operation": plan.operation}
        return {**facts, "applied": "now" if now else "before; this is the first answer", "answer": plan.answer}

    def watch(self, operation_id: str, project_id: str = "", after: str = "", seconds: float = WATCH_S) -> Any:
        """Wait until an operation ends or `seconds` have passed. Returns its steps so far, and in `next_after` the
        cursor with which a further call continues."""
        deadline = time.monotonic() + min(seconds, LONGEST_WATCH_S)
        with session(self._common) as at:
            project = project_id or at.project_id
            steps, cursor = [], after
            while True:
                operation = at.client.get_operation(project, operation_id)
                seen, cursor = _steps(at, project, operation_id, cursor, deadline if operation.status in LIVE else 0.0)
                steps += seen
                if operation.status not in LIVE or time.monotonic() >= deadline:
                    ended = operation.status not in LIVE
                    return {"ended": ended, "steps": steps, "next_after": cursor, "operation": operation}

    def triage(self, correlation_id: str) -> Any:
        with session(self._common) as at:
            return at.client.read_triage(correlation_id)

    def explain(self, code: str) -> Any:
        return explained(code)

    def _read(self, name: str, arguments: dict[str, Any], kind: str, defaults: dict[str, Any]) -> Any:
        one = _named(name, kind)
        with session(self._common) as at:
            usual = {key: value for key, value in defaults.items() if key in one.parameters}
            return at.client.send(one.request(_filled(at, one, usual | arguments)))

    def _table(self) -> list[Tool]:
        names = {kind: [one.name for one in operations().values() if one.kind == kind] for kind in (LIST, READ, CHANGE)}
        text, number = {"type": "string"}, {"type": "number"}
        planned = f"the plan is valid for {LIFE_S // 60} minutes and is applied once with `apply`"
        return [
            Tool(
                "operations",
                "The available operations; with `name` the arguments of one operation.",
                self.operations,
                {"name": text, "about": {**text, "description": "only operations that mention this text"}},
            ),
            Tool(
                "find",
                "Lists of instances, allocations, nodes, operations, apps, events, …, in pages.",
                self.find,
                {"what": {"type": "string", "enum": names[LIST]}, "arguments": ARGUMENTS},
                ("what",),
            ),
            Tool(
                "describe",
                "One resource in detail, by its id.",
                self.describe,
                {"what": {"type": "string", "enum": names[READ]}, "arguments": ARGUMENTS},
                ("what",),
            ),
            Tool(
                "plan",
                f"The effect of a change, checked by the platform where possible. Nothing is changed; {planned}.",
                self.plan,
                {"operation": {"type": "string", "enum": names[CHANGE]}, "arguments": ARGUMENTS},
                ("operation",),
            ),
            Tool(
                "apply",
                "Apply a plan, once. Show the plan to the user first.",
                self.apply,
                {"plan_id": text},
                ("plan_id",),
                changes=True,
            ),
            Tool(
                "watch",
                "The steps of an operation until it ends or `seconds` are over; continue with `after` = `next_after`.",
                self.watch,
                {"operation_id": text, "project_id": text, "after": text, "seconds": number},
                ("operation_id",),
            ),
            Tool(
                "triage",
                "Everything recorded under a correlation id, in order: what failed, why, and what to do.",
                self.triage,
                {"correlation_id": text},
                ("correlation_id",),
            ),
            Tool(
                "explain", "What an error code means and what to do about it.", self.explain, {"code": text}, ("code",)
            ),
        ]


def _named(name: str, kind: str = "") -> Operation:
    one = operations().get(name)
    if one is None or (kind and one.kind != kind):
        raise CliError(f"There is no operation {name} here.", "The tool `operations` lists them.", failures.USAGE)
    return one


def _check(what: str, given: dict[str, Any], known: set[str], required: tuple[str, ...]) -> None:
    unknown, missing = sorted(set(given) - known), [name for name in required if name not in given]
    if unknown or missing:
        words = [f"does not know {', '.join(unknown)}"] * bool(unknown) + [f"needs {', '.join(missing)}"] * bool(
            missing
        )
        way_out = f"It takes {', '.join(sorted(known)) or 'nothing'}."
        raise CliError(f"{what} {' and '.join(words)}.", way_out, failures.USAGE)


def _filled(at: Session, one: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments; if a required project or tenant is missing, the current one is filled in. Raises CliError
    if an argument is missing or invalid."""
    usual: dict[str, Callable[[], str]] = {"project_id": lambda: at.project_id, "tenant_id": lambda: at.tenant_id(None)}
    lacking = [name for name in one.required if name in usual and name not in arguments]
    filled = {**{name: usual[name]() for name in lacking}, **arguments}
    _check(one.name, filled, set(one.parameters), one.required)
    try:
        msgspec.json.encode(one.request(filled).body)
    except (ValueError, TypeError) as error:
        raise CliError(
            f"{one.name}: {error}.", "See the tool `operations` for its arguments.", failures.USAGE
        ) from error
    return filled


def _places(one: Operation, filled: dict[str, Any]) -> list[Any]:
    return [filled[name] for name in one.positional]


def _named_only(one: Operation, filled: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in filled.items() if name not in one.positional}


def _plan_view(one: Operation, plan: Plan, effects: Any) -> dict[str, Any]:
    request = plan.request
    facts = {"plan_id": plan.id, "valid_for_s": LIFE_S, "operation": one.name, "what": one.sentence}
    sends = {"method": request.method, "path": request.path, "body": request.body, "headers": request.headers}
    checked = "by the platform" if effects is not None else "not checked by the platform: this is the exact request"
    return {**facts, "sends": sends, "checked": checked, "effects": effects.plan if effects is not None else None}


def _steps(at: Session, project: str, operation_id: str, after: str, deadline: float) -> tuple[list[Any], str]:
    """Return new events of the operation, and the cursor after them. Without the permission to read events, wait
    briefly and return no events."""
    wait = int(max(0.0, min(deadline - time.monotonic(), 20.0)))
    try:
        start = after or str(max(0, sequence_now(at.client, project) - 500))
        page = at.client.list_project_events(project, after=start, limit=500, wait_s=wait or None)
    except (Denied, NotFound):
        time.sleep(min(POLL_S, wait))
        return [], after
    mine = [one for one in page.items if one.data.get("operation_id") == operation_id]
    return [{"at": one.time, "type": one.type, **_facts(one.data)} for one in mine], page.next_after


def _facts(data: dict[str, Any]) -> dict[str, Any]:
    return {key: data[key] for key in ("status", "step", "of", "message") if data.get(key) not in (None, "")}
