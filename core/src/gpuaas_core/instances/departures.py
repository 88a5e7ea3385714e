"""Departure certificates: what was proven when an instance, or one member, left a machine. Written by `endings`, with
the end of the operation, and never changed.

The statement is the app's evidence together with what only the platform knows: which machine, whose instance, who
asked. Its digest is over canonical JSON, so that whoever kept a copy can compare it years later. The operation's ways
into its machines are taken back in the same moment; whether a machine refuses them yet is looked up when it is shown.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, Select, func, insert, or_, select

from ..authz.context import Context
from ..capacity.revocation import revoke
from ..capacity.tables import nodes
from ..custody import grants
from ..custody.tables import access_grants
from ..kit.clock import rfc3339
from ..kit.ids import new_id
from ..kit.wire import canonical
from .certificates import PERSON
from .departure_schemas import DepartureCertificateView
from .errors import EvidenceMissing, EvidenceNotClean, EvidenceUnverifiable
from .tables import departure_certificates
from .transitions import instance_facts
from .work import Work

FORMAT = 1  # of the statement: another number when a field comes or goes, or copies could not be compared
Evidence = dict[str, Any] | None


def check_verifiable(allocations: set[str], evidence: Evidence) -> None:
    """Every machine has at least one check, and every check has a name and a result."""
    reported = evidence or {}
    missing = sorted(allocations - set(reported))
    if missing:
        raise EvidenceMissing(f"No evidence for {', '.join(missing)}.")
    for allocation_id in sorted(allocations):
        if problem := _unverifiable(reported[allocation_id]):
            raise EvidenceUnverifiable(f"The evidence for {allocation_id} {problem}."[:1000])


def check_evidence(allocations: set[str], evidence: Evidence) -> None:
    """Every machine has checks, and every check passed."""
    check_verifiable(allocations, evidence)
    for allocation_id in sorted(allocations):
        failed = [check for check in checks_in((evidence or {})[allocation_id]) if not check["ok"]]
        if failed:
            results = "; ".join(f"{check['check']}: {check['detail']}" for check in failed)
            raise EvidenceNotClean(f"Failed checks for {allocation_id}: {results}."[:1000])


def _unverifiable(entry: Any) -> str:
    """Why the core cannot check this entry; empty if it can."""
    rows = entry.get("checks") if isinstance(entry, dict) else None
    if not isinstance(rows, list) or not rows:
        return "has no `checks`"
    for number, row in enumerate(rows):
        name = row.get("check") if isinstance(row, dict) else None
        if not isinstance(name, str) or not name.strip():
            return f"has no name in `checks[{number}].check`"
        if not isinstance(row.get("ok"), bool):
            return f"has no result for the check {name!r}: `checks[{number}].ok` must be true or false"
    return ""


def checks_in(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of `check`, `ok` and `detail` of evidence that `check_verifiable` accepted."""
    return [{"check": row["check"], "ok": row["ok"], "detail": str(row.get("detail") or "")} for row in entry["checks"]]


def leave_machines(ctx: Context, row: Work) -> None:
    """First of all that an end does: machines are locked before anything is told."""
    mine = (access_grants.c.operation_id == row.id) & grants.live(ctx.now)
    if held := ctx.tx.execute(select(access_grants).where(mine).order_by(access_grants.c.id)).all():
        revoke(ctx, held, "its operation has left the machine")


def certify(ctx: Context, instance: Row[Any], row: Work, left: Iterable[Row[Any]], evidence: Evidence) -> None:
    """One certificate per machine that the members left."""
    by_machine: dict[str, list[Row[Any]]] = {}
    for member in left:
        by_machine.setdefault(member.allocation_id, []).append(member)
    for allocation_id, gone in by_machine.items():
        _issue(ctx, instance, row, gone, (evidence or {})[allocation_id])


def _issue(ctx: Context, instance: Row[Any], row: Work, gone: list[Row[Any]], said: Any) -> None:
    certificate_id, member = new_id("dep"), gone[0]
    statement = _statement(ctx, certificate_id, instance, row, gone, said)
    digest = digest_of(statement)
    place = {"allocation_id": member.allocation_id, "node_id": member.node_id}
    ctx.tx.execute(
        insert(departure_certificates).values(
            id=certificate_id,
            tenant_id=instance.tenant_id,
            project_id=instance.project_id,
            instance_id=instance.id,
            operation_id=row.id,
            statement=statement,
            digest=digest,
            issued_at=ctx.now,
            **place,
        )
    )
    facts = {"operation_id": row.id, "certificate_id": certificate_id, "digest": digest} | place
    ctx.emit("apps.departure.certified", certificate_id, instance_facts(instance) | facts)


def _statement(
    ctx: Context, certificate_id: str, instance: Row[Any], row: Work, gone: list[Row[Any]], said: Any
) -> dict[str, Any]:
    member = gone[0]
    return {
        "format": FORMAT,
        "certificate_id": certificate_id,
        "issued_at": rfc3339(ctx.now),
        "org_id": instance.tenant_id,
        "project_id": instance.project_id,
        "host": {
            "node_id": member.node_id,
            "name": member.node_name,
            "address": member.address,
            "allocation_id": member.allocation_id,
        },
        "instance": {
            "id": instance.id,
            "name": instance.name,
            "app_slug": instance.app_slug,
            "version": instance.version,
        },
        "members": [{"id": one.id, "component_key": one.component_key, "ordinal": one.ordinal} for one in gone],
        "operation": {
            "id": row.id,
            "kind": row.kind,
            "requested_by": row.requested_by,
            "requested_at": rfc3339(row.created_at),
            "controller": row.claimed_by,
            "correlation_id": row.correlation_id,
        },
        "checks": checks_in(said),
        "evidence": said,
    }


def digest_of(statement: dict[str, Any]) -> str:
    return "sha256:" + hashlib.sha256(canonical(statement).encode()).hexdigest()


def certificates_of(project_id: str, **wanted: str | None) -> Select[Any]:
    c = departure_certificates.c
    query = select(departure_certificates).where(c.project_id == project_id)
    return query.where(*(c[name] == value for name, value in wanted.items() if value))


def view(tx: Connection, row: Row[Any], now: int) -> DepartureCertificateView:
    return DepartureCertificateView.model_validate(dict(row._mapping) | {"access": _access(tx, row, now)})


def _access(tx: Connection, row: Row[Any], now: int) -> dict[str, int]:
    """Of the operation that left, and of people: earlier operations ended before it, and their grants with them."""
    g = access_grants.c
    people = (g.purpose == PERSON) & (g.created_at <= row.issued_at)
    mine = or_(g.operation_id == row.operation_id, people) & (g.allocation_id == row.allocation_id)
    count = select(func.count()).select_from(access_grants)
    late = count.join(nodes, nodes.c.id == row.node_id).where(
        mine, grants.lasting(now), g.revoked_generation > nodes.c.trust_applied
    )
    return {
        "open_grants": tx.execute(count.where(mine, grants.live(now))).scalar_one(),
        "grants_not_yet_refused": tx.execute(late).scalar_one(),
    }
