"""Generates the page of limits and durations, read from the code that enforces them."""

from collections.abc import Iterator
from typing import get_args

from ...audit import anchoring
from ...capacity import silence
from ...catalog import manifest
from ...enrolment import service as enrolment
from ...events import routes as event_routes
from ...events import stream
from ...http import bounds, lists
from ...idempotency import requests
from ...identity import assertions, invitations, login_throttle, node_keys, service_accounts, sessions
from ...kit import wire
from ...kit.clock import DEFAULTS
from ...machine_access import authorities
from ...node_polls import schemas as poll
from ...node_tasks import kinds
from ...node_tasks import schemas as task_schemas
from ...node_tasks import service as tasks
from ...operations import claims
from ...triage import otlp_rows, otlp_wire, reads, schemas
from ...triage import service as triage
from .markdown import table

HEAD = """# Numbers

Times, sizes and counts that a caller can meet. What this version does not do at all is in [limits](../limits.md).
"""

DAY, HOUR, MINUTE = 24 * 3600, 3600, 60


def _time(seconds: float) -> str:
    for unit, size in (("day", DAY), ("hour", HOUR), ("minute", MINUTE), ("second", 1)):
        if seconds >= size and seconds % size == 0:
            return wire.counted(int(seconds // size), unit)
    return f"{seconds:g} seconds"


def _size(size: int) -> str:
    return f"{size // 2**20} MiB" if size % 2**20 == 0 else f"{size // 1024} KiB"


def _most(parameter: object) -> int:
    """Return the maximum that a query parameter declares."""
    bounds_said = [one.le for said in get_args(parameter)[1:] for one in said.metadata if hasattr(one, "le")]
    return bounds_said[0]


TABLES: dict[str, list[tuple[str, str, str]]] = {
    "Signing in": [
        ("A person's session", _time(sessions.USER_TOKEN_S), "then sign in again"),
        ("A machine's access token", _time(sessions.MACHINE_TOKEN_S), "then ask with a new client assertion"),
        ("A client assertion", _time(assertions.ASSERTION_MAX_S), "and it is good for one use"),
        ("Clock difference forgiven", _time(assertions.SKEW_S), "in client assertions"),
        (
            "Wrong passwords",
            f"{login_throttle.MOST} in {_time(login_throttle.WINDOW_MS / 1000)}",
            "per account and address, then 429",
        ),
        (
            "A try with an e-mail that was tried often elsewhere",
            f"waits up to {_time(login_throttle.LONGEST_WAIT_S)}",
            "not from an address the account signed in from before",
        ),
        ("Keys of a service account", str(service_accounts.MOST_KEYS), "retire one to add another"),
        ("An invitation", _time(invitations.INVITATION_MS / 1000), "then invite again"),
    ],
    "Requests": [
        ("A body", _size(bounds.MOST_BYTES), "413 above"),
        ("Nesting of a body", f"{wire.MOST_LEVELS} levels", "400 above"),
        ("The inputs of an instance", _size(manifest.MOST_INPUT_BYTES), "422 above"),
        ("An answer under an Idempotency-Key", _time(requests.KEPT_MS / 1000), "then the key is free again"),
        ("A page of a list", f"{_most(lists.Limit)} items", "`next_cursor` leads on"),
    ],
    "Events": [
        ("A page of events", f"{_most(event_routes.Most)} events", "`next_after` leads on"),
        ("A long poll", _time(_most(event_routes.Wait)), "then an empty list"),
        (
            "A keep-alive on a quiet stream",
            f"every {_time(stream.PING_S)}",
            "a comment line with the position",
        ),
        ("A stream ends after a lost permission within", _time(1), "30 s if the wake-up was lost"),
    ],
    "Work": [
        ("The lease of a claim", _time(DEFAULTS.lease_s), "heartbeat well before; then others may claim"),
        ("Claims in a row without progress", str(claims.MAX_ATTEMPTS), "then the operation needs attention"),
        ("A certificate for a machine", _time(authorities.USER_CERTIFICATE_S), "ask again while the claim is held"),
    ],
    "Machines": [
        ("An enrolment token", _time(enrolment.ENROLMENT_S), "good for one machine"),
        ("A key of a machine", _time(DEFAULTS.node_key_s), "renewed at two thirds, and after a reboot"),
        ("A retired key of a machine is recognised", _time(node_keys.REMEMBERED_S), "then it is unknown"),
        ("The poll of a machine", _time(poll.LONGEST_WAIT_S), "then it polls again; each poll is a heartbeat"),
        ("A machine becomes `unknown` when its poll is overdue by", _time(silence.OVERDUE_MS / 1000), ""),
        ("A silent machine becomes `lost` after", _time(silence.LOST_AFTER_S), "or as its allocation says"),
        (
            "After a start, or a time without database, no machine is `unknown` for",
            _time(silence.FIRST_MINUTE_MS / 1000),
            "so that machines can poll again first",
        ),
        ("A host certificate", _time(authorities.HOST_CERTIFICATE_S), "enrol again before then"),
    ],
    "Tasks of machines": [
        ("The lease of a task", _time(tasks.LEASE_S), "the machine renews it while it works"),
        ("A task waits for its machine", _time(kinds.WAITS_S), "then it expires, begun or not"),
        ("A wipe waits for its machine", _time(kinds.WIPE_WAITS_S), "then it failed, and the machine stays held"),
        ("A task is handed out", f"{tasks.MOST_ATTEMPTS} times", "then it failed"),
        ("Tasks that wait for one machine", str(tasks.MOST_WAITING), "409 above"),
        ("The evidence of a task", _size(task_schemas.MOST_EVIDENCE), "as JSON; each kind says less"),
        ("Tasks that ended are kept", _time(tasks.KEPT_MS / 1000), ""),
    ],
    "Telemetry, triage and audit": [
        ("Log lines and spans are kept", _time(triage.KEPT_MS / 1000), ""),
        ("A log message", _size(schemas.MOST_MESSAGE), ""),
        ("The fields of a line, the attributes of a span", _size(schemas.MOST_FIELDS), "as JSON"),
        ("Lines, and spans, in one request", str(schemas.MOST_ROWS), "each"),
        ("Spans, or lines, in one OTLP request", str(otlp_rows.MOST_ROWS), "the rest is rejected, with the number"),
        ("An OTLP body, unpacked", _size(otlp_wire.MOST_UNPACKED), "413 above"),
        ("Entries of one kind in a timeline", str(reads.MOST), "the newest"),
        (
            "Audit rows not yet in a checkpoint",
            f"{anchoring.ROWS} rows or {_time(anchoring.AGE_MS / 1000)}",
            "whichever is first",
        ),
    ],
}


def page() -> str:
    return HEAD + "".join(_tables())


def _tables() -> Iterator[str]:
    for title, rows in TABLES.items():
        yield f"\n## {title}\n\n" + table(("what", "how much", "and then"), rows)
