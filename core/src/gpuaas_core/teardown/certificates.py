"""Departure certificates: the evidence that nothing was left when an instance or member left a machine. A certificate
is written when the operation ends, and never changed.

The statement combines the app's evidence with facts of the platform: the machine, what was on it, and who requested its
removal. The digest of the statement is over canonical JSON, so that a copy can be compared years later. The operation's
access to its machines is revoked in the same transaction. Whether a machine already enforces this revocation is read
when the certificate is shown.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, insert, select

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.clock import rfc3339
from ..kit.ids import new_id
from ..kit.json_types import JsonValue
from ..kit.rows import Query
from ..kit.wire import canonical
from ..machine_access.reads import lasting_on
from ..machine_access.revocation import end_of_operation
from ..machine_access.rows import ShownGrantRow
from ..operations.rows import OperationRow
from ..operations.targets import Subject
from .evidence import Check, Evidence, check_clean
from .rows import CertificateId, CertificateRow, Leaver
from .schemas import DepartureAccess, DepartureCertificateView
from .tables import departure_certificates

declare(
    {
        "apps.departure.certified": (
            "A departure certificate was issued: evidence shows that nothing of the instance is left on the node."
        ),
    }
)

FORMAT = 1  # of the statement: it changes with every field that is added or removed, so that copies can be compared
PERSON = "person"  # the purpose of a grant for a person
CERTIFICATES = Query(select(departure_certificates), CertificateRow)


def leave_machines(ctx: Context, operation_id: str) -> None:
    """Revoke the operation's access to its machines. Called first when an operation ends, because nodes must be locked
    before other rows."""
    end_of_operation(ctx, operation_id, "its operation has left the machine")


def certify(
    ctx: Context, subject: Subject, operation: OperationRow, left: Iterable[Leaver], evidence: Evidence
) -> None:
    """Issue one departure certificate per machine. Raises an error if the evidence for a machine is missing, cannot be
    verified or has a failed check."""
    by_machine: dict[str, list[Leaver]] = {}
    for leaver in left:
        by_machine.setdefault(leaver.allocation_id, []).append(leaver)
    checks = check_clean(by_machine, evidence)
    for allocation_id, leavers in by_machine.items():
        _issue(ctx, subject, operation, leavers, checks[allocation_id], (evidence or {})[allocation_id])


def _issue(
    ctx: Context,
    subject: Subject,
    operation: OperationRow,
    left: Sequence[Leaver],
    checks: list[Check],
    reported: JsonValue,
) -> None:
    certificate_id, host = CertificateId(new_id("dep")), left[0]
    statement = {
        "format": FORMAT,
        "certificate_id": certificate_id,
        "issued_at": rfc3339(ctx.now),
        "org_id": subject.tenant_id,
        "project_id": subject.project_id,
        "host": {
            "node_id": host.node_id,
            "name": host.node_name,
            "address": host.address,
            "allocation_id": host.allocation_id,
        },
        "instance": {
            "id": subject.id,
            "name": subject.name,
            "app_slug": subject.app_slug,
            "version": subject.version,
        },
        "members": [{"id": one.id, "component_key": one.component_key, "ordinal": one.ordinal} for one in left],
        "operation": {
            "id": operation.id,
            "kind": operation.kind,
            "requested_by": operation.requested_by,
            "requested_at": rfc3339(operation.created_at),
            "controller": operation.claimed_by,
            "correlation_id": operation.correlation_id,
        },
        "checks": checks,
        "evidence": reported,
    }
    digest = digest_of(statement)
    place = {"allocation_id": host.allocation_id, "node_id": host.node_id}
    ctx.tx.execute(
        insert(departure_certificates).values(
            id=certificate_id,
            tenant_id=subject.tenant_id,
            project_id=subject.project_id,
            instance_id=subject.id,
            operation_id=operation.id,
            statement=statement,
            digest=digest,
            issued_at=ctx.now,
            **place,
        )
    )
    facts = {"operation_id": operation.id, "certificate_id": certificate_id, "digest": digest, **place}
    ctx.emit("apps.departure.certified", certificate_id, {**subject.facts, **facts})


def digest_of(statement: Mapping[str, object]) -> str:
    return "sha256:" + hashlib.sha256(canonical(statement).encode()).hexdigest()


def certificates_of(
    project_id: str, *, instance_id: str | None, operation_id: str | None, allocation_id: str | None
) -> Query[CertificateRow]:
    c = departure_certificates.c
    wanted = ((c.instance_id, instance_id), (c.operation_id, operation_id), (c.allocation_id, allocation_id))
    return CERTIFICATES.where(c.project_id == project_id, *(column == value for column, value in wanted if value))


def certificate_views(tx: Connection, rows: Sequence[CertificateRow], now: int) -> list[DepartureCertificateView]:
    """Build the views of a page of certificates. The access grants of all of them are read with one query."""
    lasting = lasting_on(tx, {row.allocation_id for row in rows}, now)
    return [
        DepartureCertificateView.model_validate(vars(row) | {"access": _access(row, lasting)}, from_attributes=True)
        for row in rows
    ]


def _access(row: CertificateRow, lasting: Sequence[ShownGrantRow]) -> DepartureAccess:
    """Count the access grants on the machine that are still open, and those that are revoked but not yet rejected by
    the machine. Grants of the ended operation and of people are counted."""
    mine = [
        grant
        for grant in lasting
        if grant.allocation_id == row.allocation_id
        and (grant.operation_id == row.operation_id or (grant.purpose == PERSON and grant.created_at <= row.issued_at))
    ]
    late = [one for one in mine if one.revoked_generation is not None and one.revoked_generation > one.trust_applied]
    return DepartureAccess(open_grants=sum(one.revoked_at is None for one in mine), grants_not_yet_refused=len(late))
