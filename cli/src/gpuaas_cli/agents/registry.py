"""What an agent can ask for: the SDK's calls, sorted into those that list, those that read and those that change.

Nothing is listed by hand: a new call of the SDK is here by itself, with its sentence and the schema of its arguments.
Left out are calls that take or give secrets, which is read off their fields, and the few that are nobody's but a
controller's or a person's. Read by tools.py.
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
    "claim": "work is claimed by an app's controller",
    "send_telemetry": "telemetry comes from an app's controller",
    "resolve_artifact": "asked by an app's controller",
    "sign_out": "the session is the person's",
    "issue_secret": "secrets do not go through an agent",
    "create_service_account": "identities are made by people",
    "add_key": "identities are made by people",
    "open_break_glass": "people look into a tenant, and say so themselves",
    "approve_break_glass": "the second pair of eyes is a person's",
}
# How to ask what a change would do: the SDK's call for the same route with validate_only.
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
    call: Any  # of gpuaas_sdk.client.call; typed so, since a descriptor as a field confuses type checkers

    def request(self, arguments: dict[str, Any]) -> Request[Any]:
        """What would be sent. The arguments were checked before."""
        named = {name: value for name, value in arguments.items() if name not in self.positional}
        return self.call.request(*(arguments[name] for name in self.positional), **named)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": self.parameters, "required": list(self.required)}


@cache
def operations() -> dict[str, Operation]:
    """Everything an agent can ask for, by name."""
    known = {name: one for name, one in inspect.getmembers(sdk.Calls) if isinstance(one, call)}
    return {name: _operation(name, one) for name, one in known.items() if not why_not(name, one)}


def why_not(name: str, one: call[..., Any]) -> str:
    """Why a call is not for agents; "" if it is."""
    if name in NOT_FOR_AGENTS:
        return NOT_FOR_AGENTS[name]
    sample = _sample(one)
    if sample.answer is PlannedView:
        return "asked by planning"
    if "claim_epoch" in _parameters(one):
        return "asked by the controller that holds the operation"
    secret = next((field for field in (*_parameters(one), *_fields(sample.answer)) if SECRET.search(field)), "")
    return f"it takes or gives a secret ({secret})" if secret else ""


def _operation(name: str, one: call[..., Any]) -> Operation:
    sample, hints = _sample(one), get_type_hints(one._describe)
    known = _parameters(one)
    return Operation(
        name=name,
        kind=_kind(sample),
        sentence=" ".join((one.__doc__ or "").split()) or f"{name.replace('_', ' ').capitalize()}.",
        parameters={parameter: _schema(hints[parameter]) for parameter in known},
        required=tuple(key for key, said in known.items() if said.default is said.empty),
        positional=tuple(key for key, said in known.items() if said.kind is not said.KEYWORD_ONLY),
        call=one,
    )


def _parameters(one: call[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(list(inspect.signature(one._describe).parameters.items())[1:])


def _sample(one: call[..., Any]) -> Request[Any]:
    """A request with every argument given: it tells the method and the answer."""
    hints, positional, named = get_type_hints(one._describe), [], {}
    for name, said in _parameters(one).items():
        value = EXAMPLES[_plain(hints[name])]
        if said.kind is said.KEYWORD_ONLY:
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
    """`list[str] | None` is a list."""
    options = [one for one in get_args(hint) if one is not NoneType] if NoneType in get_args(hint) else [hint]
    return get_origin(options[0]) or options[0]


def _schema(hint: Any) -> dict[str, Any]:
    return {"type": TYPES[_plain(hint)]} if _plain(hint) in TYPES else {}


def _fields(answer: Any, seen: frozenset[Any] = frozenset()) -> Iterator[str]:
    """The names of everything in an answer, however deep."""
    for inner in get_args(answer):
        yield from _fields(inner, seen)
    kind = get_origin(answer) or answer
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)) or kind in seen:
        return
    for field in msgspec.structs.fields(kind):
        yield field.name
        yield from _fields(field.type, seen | {kind})
