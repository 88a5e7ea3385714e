"""Correlation and trace ids of a request: taken from its headers if well formed, otherwise generated. Log lines,
rows and answers carry them."""

import os
import re
from collections.abc import MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypedDict

_CORRELATION = re.compile(r"^[A-Za-z0-9._:-]{8,128}$")
_TRACEPARENT = re.compile(r"^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$")


class Ids(TypedDict):
    """Correlation and trace id as keyword arguments for the functions that store them."""

    correlation_id: str
    trace_id: str


@dataclass(frozen=True)
class Correlation:
    correlation_id: str
    trace_id: str
    parent_id: str | None = None  # the caller's span


current: ContextVar[Correlation | None] = ContextVar("correlation", default=None)


def correlate(header: str | None, traceparent: str | None) -> Correlation:
    trace = _TRACEPARENT.match(traceparent or "")
    real = trace if trace and trace.group(1) != "0" * 32 else None
    trace_id, parent_id = real.groups() if real else (os.urandom(16).hex(), None)
    good = header is not None and _CORRELATION.match(header)
    return Correlation(header if good and header else f"cor-{os.urandom(12).hex()}", trace_id, parent_id)


def correlated(_logger: object, _level: str, line: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Add the correlation and trace id of the current request to a log line, if there is a request. Used as a structlog
    processor."""
    ids = current.get()
    if ids is not None:
        line["correlation_id"], line["trace_id"] = ids.correlation_id, ids.trace_id
    return line
