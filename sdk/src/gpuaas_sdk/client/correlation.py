"""The correlation id of the current work, sent with every call without being passed as an argument.

A CLI command, an operation or a reconcile sets it once (`with correlation(id):`). The transport sends it as
X-Correlation-Id, so that one id leads from an error to the logs, the events and the audit rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str] = ContextVar("gpuaas_correlation_id", default="")


def new_correlation_id() -> str:
    return f"cor-{secrets.token_hex(12)}"


def current_correlation_id() -> str:
    """Return the current correlation id, or "" if none is set."""
    return _current.get()


@contextmanager
def correlation(correlation_id: str = "") -> Generator[str]:
    """Send this correlation id (or a new one) with every call made inside the block, also by tasks started there."""
    used = correlation_id or new_correlation_id()
    token = _current.set(used)
    try:
        yield used
    finally:
        _current.reset(token)
