"""The table of all task kinds. A task of another kind cannot be queued, and no agent runs it.

`contracts/node-tasks.json` is generated from this table; the agent ships its own copy of that file and validates every
task against it. `arguments` is the schema of what the node receives; `asked` is the schema of what a caller sends, if
the two differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ..kit.json_schema import message, validator
from ..kit.json_types import Json
from .errors import TaskInvalid, TaskKindUnknown

CONTROLLER, PLATFORM = "controller", "platform"

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._+@-]{0,99}"
_UNIT = r"gpuaas-(?!agent)[a-z0-9][a-z0-9@-]{0,60}\.(?:service|timer|socket)"
_PLACES = rf"(?:opt/gpuaas|etc/gpuaas/apps|var/lib/gpuaas/apps)(?:/{_NAME}){{1,8}}"
PATH = {
    "type": "string",
    "maxLength": 400,
    "pattern": rf"^/(?:{_PLACES}|etc/systemd/system/{_UNIT})$",
}
UNIT = {"type": "string", "maxLength": 80, "pattern": rf"^{_UNIT}$"}
MODE = {"type": "string", "pattern": r"^0[0-7][0-7][0-5]$"}  # never world-writable, no set-uid
OWNER = {"type": "string", "pattern": r"^[a-z_][a-z0-9_-]{0,31}$"}
SHA256 = {"type": "string", "pattern": r"^[0-9a-f]{64}$"}
ID = {"type": "string", "pattern": r"^[a-z]{2,6}_[0-9a-z]{1,33}$"}
VERSION = {"type": "string", "pattern": r"^[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}$"}
ACTIONS = ["start", "stop", "restart", "reload", "enable", "disable"]
PROBES = ["units", "processes", "ports", "disk"]
MOST_TEXT = 64 * 1024
MOST_BYTES = 16 * 2**30
WAITS_S = 600  # time in the queue, beyond the time limit of the work
WIPE_WAITS_S = 7 * 24 * 3600  # a node that was offline is wiped before it is allocated again
WIPE = "wipe"


def _object(optional: Json | None = None, /, **required: Json) -> Json:
    fields = {**required, **(optional or {})}
    return {"type": "object", "properties": fields, "required": [*required], "additionalProperties": False}


def _size(most: int) -> Json:
    return {"type": "integer", "minimum": 0, "maximum": most}


@dataclass(frozen=True)
class Kind:
    says: str
    arguments: Json
    idempotent: bool  # may be repeated after an interruption
    time_limit_s: int
    output_limit: int  # bytes of evidence
    asked_by: str = CONTROLLER
    asked: Json | None = None
    waits_s: int = WAITS_S


_OWNED = {"owner": OWNER, "group": OWNER}

KINDS: dict[str, Kind] = {
    "write_file": Kind(
        "Writes a file atomically, with its mode and owner, below one of the directories tasks may change.",
        _object(_OWNED, path=PATH, content={"type": "string", "maxLength": MOST_TEXT}, mode=MODE),
        idempotent=True,
        time_limit_s=30,
        output_limit=4096,
    ),
    "fetch_artifact": Kind(
        "Fetches a registered artifact through the platform; it is stored only if size and digest match.",
        _object(delivery=ID, sha256=SHA256, size=_size(MOST_BYTES), path=PATH, mode=MODE),
        idempotent=True,
        time_limit_s=1800,
        output_limit=4096,
        asked=_object(artifact_id=ID, path=PATH, mode=MODE),
    ),
    "run_unit": Kind(
        "Starts, stops or restarts a systemd unit whose name begins with gpuaas-.",
        _object(unit=UNIT, action={"type": "string", "enum": ACTIONS}),
        idempotent=False,
        time_limit_s=120,
        output_limit=16384,
    ),
    "collect_evidence": Kind(
        "Reads units, processes, listening ports, disks or file digests; changes nothing.",
        _object(
            {"files": {"type": "array", "items": PATH, "maxItems": 20}},
            what={
                "type": "array",
                "items": {"type": "string", "enum": [*PROBES, "files"]},
                "minItems": 1,
                "maxItems": 5,
            },
        ),
        idempotent=True,
        time_limit_s=60,
        output_limit=65536,
    ),
    WIPE: Kind(
        "Ends sessions, removes the units and files of an allocation's tasks, and rejects further tasks for it.",
        _object(),
        idempotent=True,
        time_limit_s=300,
        output_limit=16384,
        asked_by=PLATFORM,
        waits_s=WIPE_WAITS_S,
    ),
    "upgrade_agent": Kind(
        "Starts another version of the agent, keeps it once it has reported to the platform, and otherwise rolls back.",
        _object(sha256=SHA256, size=_size(64 * 2**20), version=VERSION),
        idempotent=True,
        time_limit_s=300,
        output_limit=4096,
        asked_by=PLATFORM,
    ),
}

_WHOLE = {"type": "integer", "minimum": 0, "maximum": 2**53}
_MAYBE_ID = {"anyOf": [ID, {"type": "null"}]}

# What is signed. `not_before` and `expires_at` are seconds since 1970 by the platform's clock.
DOCUMENT: Json = _object(
    task_id=ID,
    node_id=ID,
    allocation_id=_MAYBE_ID,
    operation_id=_MAYBE_ID,
    epoch=_WHOLE,
    attempt=_WHOLE,
    kind={"type": "string", "enum": [*KINDS]},
    arguments={"type": "object"},
    not_before=_WHOLE,
    expires_at=_WHOLE,
)


def contract() -> Json:
    kinds = {
        name: {
            "says": kind.says,
            "asked_by": kind.asked_by,
            "idempotent": kind.idempotent,
            "time_limit_s": kind.time_limit_s,
            "output_limit": kind.output_limit,
            "arguments": kind.arguments,
            "asked": kind.asked or kind.arguments,
        }
        for name, kind in KINDS.items()
    }
    return {"document": DOCUMENT, "kinds": kinds}


def asked_for(name: str, arguments: Json, by: str) -> Kind:
    """Return the task kind. Raises TaskKindUnknown if this caller may not queue the kind, and TaskInvalid if the
    arguments do not match."""
    kind = KINDS.get(name)
    if kind is None or kind.asked_by != by:
        known = ", ".join(sorted(known_name for known_name, kind in KINDS.items() if kind.asked_by == by))
        raise TaskKindUnknown(f"{name[:60]!r} is not a known task kind. Known: {known}.")
    check(kind.asked or kind.arguments, arguments)
    return kind


def check(schema: Json, arguments: Json) -> None:
    errors = sorted(validator(schema).iter_errors(arguments), key=lambda error: list(error.path))
    if errors:
        details = [{"pointer": _pointer(error.path), "message": message(error)[:300]} for error in errors[:20]]
        raise TaskInvalid("The arguments do not match the schema of the task kind.", errors=details)


def _pointer(path: Iterable[str | int]) -> str:
    return "/arguments" + "".join(f"/{part}" for part in path)
