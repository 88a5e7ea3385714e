"""Prints a departure certificate: the checks of a node, and whether the certificate was altered.

The digest is recomputed from the answer of the API. Used by `gpuaas operation certificate`.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from . import show

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import DepartureCertificateView

KNOWN_FORMAT = 1


def digest_of(one: DepartureCertificateView) -> str:
    import msgspec

    statement = msgspec.to_builtins(one.statement)
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def unaltered(one: DepartureCertificateView) -> bool | None:
    """Return True if the certificate matches its digest, False if it was altered; None if it has a newer format than
    this version supports."""
    return digest_of(one) == one.digest if one.statement.format == KNOWN_FORMAT else None


def print_certificate(one: DepartureCertificateView) -> None:
    statement = one.statement
    left = statement.instance
    show.facts(
        [
            ("node", f"{statement.host.name} ({statement.host.address}), {statement.host.node_id}"),
            ("allocation", statement.host.allocation_id),
            (
                "left by",
                f"{left.name} ({left.app_slug} {left.version}), {left.id}",
            ),
            ("members", ", ".join(f"{m.component_key} {m.ordinal}" for m in statement.members)),
            ("operation", f"{statement.operation.kind} {statement.operation.id}"),
            ("requested by", f"{statement.operation.requested_by} at {statement.operation.requested_at}"),
            ("controller", statement.operation.controller or ""),
            ("issued at", statement.issued_at),
            ("access", _access(one)),
            ("digest", f"{one.digest} ({VERDICTS[unaltered(one)]})"),
            ("correlation", statement.operation.correlation_id),
            ("id", one.id),
        ]
    )
    print()
    for check in statement.checks:
        print(f"  {'ok ' if check.ok else 'NOT'} {check.check.replace('_', ' ')}: {check.detail}")
    if statement.checks:
        print()


VERDICTS = {True: "verified", False: "ALTERED", None: "not checked: written by a newer platform"}


def _access(one: DepartureCertificateView) -> str:
    if one.access.open_grants:
        many = "1 certificate" if one.access.open_grants == 1 else f"{one.access.open_grants} certificates"
        return f"{many} still valid; check again in a moment"
    if one.access.grants_not_yet_refused:
        return f"revoked; {one.access.grants_not_yet_refused} not yet confirmed by the host"
    return "revoked and confirmed by the host"
