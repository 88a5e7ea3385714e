"""Logs JSON lines to stderr, each with the correlation id of its operation, including the SDK's own log lines.

Lines about an operation are also sent to the platform, for `gpuaas triage`: the event and the fields in SENT_FIELDS.
"""

import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog
from gpuaas_sdk import TelemetrySender

SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


# What may leave this process with a line: a new field is added only after a review.
SENT_FIELDS = (
    "kind",
    "step",
    "host",
    "acted",
    "ms",
    "exit",
    "stderr",
    "code",
    "outcome",
    "why",
    "attempt",
    "claim_epoch",
)
_senders: dict[str, TelemetrySender] = {}  # by project


@contextmanager
def send_to_platform(sender: TelemetrySender, project_id: str) -> Iterator[None]:
    """Send lines about this project's operations to the platform while the block runs."""
    _senders[project_id] = sender
    try:
        yield
    finally:
        _senders.pop(project_id, None)


def forward_line(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Queue the line for the platform and return it unchanged, without waiting (a structlog processor)."""
    sender = _senders.get(str(line.get("project_id", "")))
    if sender is not None and line.get("correlation_id"):
        ids = {"correlation_id": line["correlation_id"], "operation_id": line.get("operation_id")}
        fields = {name: line[name] for name in SENT_FIELDS if line.get(name) not in (None, "")}
        sender.line(_sentence(line), level=str(line.get("level", "info")), **ids, **fields)
    return line


def _sentence(line: MutableMapping[str, Any]) -> str:
    event, host, step = str(line.get("event", "")), line.get("host"), line.get("step")
    if line.get("kind") == "step":
        return f"{step} on {host}: " + (f"done in {line.get('ms')} ms" if line.get("acted") else "already so")
    if line.get("kind") == "command":
        error = f": {line['stderr']}" if line.get("stderr") else ""
        return f"{step} on {host} ended with {line.get('exit')} after {line.get('ms')} ms{error}"
    return ": ".join(str(part) for part in (event, line.get("message"), line.get("why")) if part)


def set_up(level: str = "INFO") -> None:
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*SHARED, structlog.stdlib.add_logger_name],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for noisy in ("asyncssh", "httpx2", "httpcore2"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*SHARED, forward_line, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        cache_logger_on_first_use=False,
    )
