"""Correlation and trace ids: accepted if well formed, otherwise generated; on every log line, row and answer."""

import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass

_CORRELATION = re.compile(r"^[A-Za-z0-9._:-]{8,128}$")
_TRACEPARENT = re.compile(r"^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$")


@dataclass(frozen=True)
class Correlation:
    correlation_id: str
    trace_id: str
    parent_id: str | None = None  # the caller's span


current: ContextVar[Correlation | None] = ContextVar("correlation", default=None)


def correlate(header: str | None, traceparent: str | None) -> Correlation:
    trace = _TRACEPARENT.match(traceparent or "")
    real = trace if trace and trace.group(1) != "0" * 32 else None
    trace_id, parent_id = real.groups() if real else (secrets.token_hex(16), None)
    good = header is not None and _CORRELATION.match(header)
    return Correlation(header if good and header else f"cor-{secrets.token_hex(12)}", trace_id, parent_id)
