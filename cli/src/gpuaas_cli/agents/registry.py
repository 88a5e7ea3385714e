"""The operations that an agent can use: the SDK's calls, sorted into list, read and change.

The registry is derived from the SDK: a new call is included automatically, with its docstring and the schema of its
arguments. Excluded are calls that take or return secrets, detected by their fields, and calls of controllers and
people. Read by tools.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import gpuaas_sdk as sdk
import msgspec
from gpuaas_sdk.client.call import call
from gpuaas_sdk.client.models import PlannedView
from gpuaas_sdk.client.request import Page, Request

LIST, READ, CHANGE = "list", "read", "change"
SECRET = re.compile(
    r"password|(^|_)token$|secret$|private_key|^credential$|sealed|certificate$|verifier|assertion|_access_key"
)
NOT_FOR_AGENTS = {
    "claim": "only for an app's controller",
    "send_telemetry": "only for an app's controller",
    "resolve_artifact": "only for an app's controller",
    "sign_out": "the session belongs to the person",
    "issue_secret": "secrets are not exposed to an agent",
    "create_service_account": "identities are created by people",
    "add_key": "identities are created by people",
    "open_break_glass": "break-glass is opened by a person",
    "approve_break_glass": "break-glass is approved by a person",
}
# The SDK's call that plans a change: the same route with validate_only.
PLANNERS = {
    "update_instance": "plan_update",
    "deploy": "plan",
    "decommission": "plan_decommission",
    "add_members": "plan_members",
    "remove_member": "plan_remove_member",
}
EXAMPLES: dict[Any, Any] = {str: "x", int: 1, bool: True, float: 1.0, dict: {}, list: [], Mapping: {}, Sequence: []}
TYPES: dict[Any, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}
TYPES |= {dict: "object", Mapping: "object", list: "array", Sequence: "array"}


@dataclass(frozen=True)
class Operation:
    name: str
    kind: str
    sentence: str
    parameters: dict[str, dict[str, Any]]
    required: tuple[str, ...]
    positional: tuple[str, ...]
    call: Any  # a gpuaas_sdk.client.call; Any, because type checkers misread a descriptor in a field

    def request(self, arguments: dict[str, Any]) -> Request[Any]:
        """Build the API request of this operation. The caller must have validated the arguments."""
        named = {name: value for name, value in arguments.items() if name not in self.positional}
        return self.call.request(*(arguments[name] for name in self.positional), **named)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": self.parameters, "required": list(self.required)}


@cache
def operations() -> dict[str, Operation]:
    """Return all operations that an agent can use, by name."""
    known = {name: one for name, one in inspect.getmembers(sdk.Calls) if isinstance(one, call)}
    return {name: _operation(name, one) for name, one in known.items() if not why_not(name, one)}


def why_not(name: str, one: call[..., Any]) -> str:
    """Return why agents may not use a call; "" if they may use it."""
    if name in NOT_FOR_AGENTS:
        return NOT_FOR_AGENTS[name]
    sample = _sample(one)
    if sample.answer is PlannedView:
        return "used by the plan tool"
    if "claim_epoch" in _parameters(one):
        return "only for the controller of the operation"
    secret = next((field for field in (*_parameters(one), *_fields(sample.answer)) if SECRET.search(field)), "")
    return f"takes or returns a secret ({secret})" if secret else ""


def _operation(name: str, one: call[..., Any]) -> Operation:
    sample, hints = _sample(one), get_type_hints(one._describe)
    known = _parameters(one)
    return Operation(
        name=name,
        kind=_kind(sample),
        sentence=" ".join((one.__doc__ or "").split()) or f"{name.replace('_', ' ').capitalize()}.",
        parameters={parameter: _schema(hints[parameter]) for parameter in known},
        required=tuple(key for key, rule in known.items() if rule.default is rule.empty),
        positional=tuple(key for key, rule in known.items() if rule.kind is not rule.KEYWORD_ONLY),
        call=one,
    )


def _parameters(one: call[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(list(inspect.signature(one._describe).parameters.items())[1:])


def _sample(one: call[..., Any]) -> Request[Any]:
    """Build a request with example arguments, to read the method and the answer type of the call."""
    hints, positional, named = get_type_hints(one._describe), [], {}
    for name, rule in _parameters(one).items():
        value = EXAMPLES[_plain(hints[name])]
        if rule.kind is rule.KEYWORD_ONLY:
            named[name] = value
        else:
            positional.append(value)
    return one.request(*positional, **named)


def _kind(sample: Request[Any]) -> str:
    if sample.method != "GET":
        return CHANGE
    many = get_origin(sample.answer) is Page or "items" in getattr(sample.answer, "__struct_fields__", ())
    return LIST if many else READ


def _plain(hint: Any) -> Any:
    """Return the type without `None` and without its parameters: `list[str] | None` becomes `list`."""
    options = [one for one in get_args(hint) if one is not NoneType] if NoneType in get_args(hint) else [hint]
    return get_origin(options[0]) or options[0]


def _schema(hint: Any) -> dict[str, Any]:
    return {"type": TYPES[_plain(hint)]} if _plain(hint) in TYPES else {}


def _fields(answer: Any, seen: frozenset[Any] = frozenset()) -> Iterator[str]:
    """Yield the field names of an answer type, including those of nested types."""
    for inner in get_args(answer):
        yield from _fields(inner, seen)
    kind = get_origin(answer) or answer
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)) or kind in seen:
        return
    for field in msgspec.structs.fields(kind):
        yield field.name
        yield from _fields(field.type, seen | {kind})
