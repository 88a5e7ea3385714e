"""A departure certificate for people: what was proven of which machine, and whether it still is what was written.

The digest is computed here once more, from what the API answered. Used by `gpuaas operation certificate`.
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
    """None: written by a newer platform, with fields that this program does not know."""
    return digest_of(one) == one.digest if one.statement.format == KNOWN_FORMAT else None


def print_certificate(one: DepartureCertificateView) -> None:
    said = one.statement
    show.facts(
        [
            ("machine", f"{said.host.name} ({said.host.address}), {said.host.node_id}"),
            ("held as", said.host.allocation_id),
            ("left by", f"{said.instance.name} ({said.instance.app_slug} {said.instance.version}), {said.instance.id}"),
            ("it was", ", ".join(f"{m.component_key} {m.ordinal}" for m in said.members)),
            ("operation", f"{said.operation.kind} {said.operation.id}"),
            ("asked by", f"{said.operation.requested_by} at {said.operation.requested_at}"),
            ("done by", said.operation.controller or ""),
            ("proven at", said.issued_at),
            ("access", _access(one)),
            ("digest", f"{one.digest} ({VERDICTS[unaltered(one)]})"),
            ("correlation", said.operation.correlation_id),
            ("id", one.id),
        ]
    )
    print()
    for check in said.checks:
        print(f"  {'ok ' if check.ok else 'NOT'} {check.check.replace('_', ' ')}: {check.detail}")
    if said.checks:
        print()


VERDICTS = {True: "as it was written", False: "IT WAS CHANGED", None: "not checked: written by a newer platform"}


def _access(one: DepartureCertificateView) -> str:
    if one.access.open_grants:
        many = "1 certificate" if one.access.open_grants == 1 else f"{one.access.open_grants} certificates"
        return f"{many} can still enter the machine; look again in a moment"
    if one.access.grants_not_yet_refused:
        return f"revoked; the machine has yet to say that it refuses {one.access.grants_not_yet_refused}"
    return "revoked; nobody of this operation can enter the machine"
