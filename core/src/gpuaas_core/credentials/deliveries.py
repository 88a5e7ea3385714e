"""Bindings of credentials to instances, and the records of deliveries: one per claim and version.

The encrypted response of a delivery is stored for a few minutes: a caller that lost the response sends the request
again with the same Idempotency-Key. Any other second request is rejected.
"""

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, func, select, update

from ..authz.context import Context
from ..idempotency import requests
from ..kit.db import insert_new
from ..kit.ids import new_id
from ..kit.problems import Problem
from ..kit.rows import Query
from .rows import SecretRow, UseRow, VersionRow
from .sealing import LIVES_S
from .states import REVOKED
from .tables import credential_bindings, credential_deliveries, credentials, secret_deliveries

AT_ONCE = 500
BOOKS = (credential_deliveries, secret_deliveries)
_D = credential_deliveries.c
_LAST = func.max(_D.delivered_at).label("last_used_at")
_USES = Query(
    select(_D.instance_id, _D.version, _LAST)
    .where(_D.credential_id == bindparam("credential"))
    .group_by(_D.instance_id, _D.version)
    .order_by(_LAST.desc(), _D.version.desc(), _D.instance_id),
    UseRow,
)


class AlreadyDelivered(Problem):
    status, code, title = 410, "already_delivered", "The secret was already delivered to this claim"
    way_out = (
        f"If the response was lost, repeat the request with the same Idempotency-Key within {LIVES_S} s. "
        "After a crash, claim the operation again: a secret is delivered once for each claim epoch."
    )


def bind(ctx: Context, credential_id: str, instance_id: str) -> bool:
    """Bind the credential to the instance and return True; return False if it was bound already."""
    values = {"credential_id": credential_id, "instance_id": instance_id}
    return insert_new(ctx.tx, credential_bindings, **values, bound_by=ctx.principal.id, bound_at=ctx.now)


def unbind(tx: Connection, credential_id: str, instance_id: str) -> bool:
    b = credential_bindings.c
    mine = (b.credential_id == credential_id) & (b.instance_id == instance_id)
    return bool(tx.execute(delete(credential_bindings).where(mine)).rowcount)


def bindings_of(tx: Connection, credential_id: str) -> set[str]:
    b = credential_bindings.c
    return set(tx.execute(select(b.instance_id).where(b.credential_id == credential_id)).scalars())


def bound_credential(tx: Connection, instance_id: str, name: str) -> str | None:
    """Return the id of the credential with this name that is bound to the instance, or None.

    A name can be reused after a revocation; the credential that is not revoked takes precedence.
    """
    c, b = credentials.c, credential_bindings.c
    mine = select(c.id).join(credential_bindings, b.credential_id == c.id)
    mine = mine.where(b.instance_id == instance_id, c.name == name)
    return tx.execute(mine.order_by(c.state == REVOKED, c.created_at.desc(), c.id.desc()).limit(1)).scalar()


def deliver_once(ctx: Context, version: VersionRow, instance_id: str, operation_id: str, epoch: int) -> None:
    what: dict[str, str | int] = {"credential_id": version.credential_id, "version": version.version}
    if not _first(ctx, credential_deliveries, what, instance_id, operation_id, epoch):
        raise AlreadyDelivered(f"Version {version.version} was delivered to claim epoch {epoch} of {operation_id}.")


def deliver_secret_once(ctx: Context, secret: SecretRow, operation_id: str, epoch: int) -> None:
    """Record the delivery of this version of a runtime secret.
    Raises AlreadyDelivered if the claim has received it before."""
    if not _first(ctx, secret_deliveries, {"secret_id": secret.id}, secret.instance_id, operation_id, epoch):
        detail = f"Version {secret.version} of {secret.name!r} was delivered to claim epoch {epoch} of {operation_id}."
        raise AlreadyDelivered(detail)


def _first(
    ctx: Context, book: Table, what: dict[str, str | int], instance_id: str, operation_id: str, epoch: int
) -> bool:
    """Insert the delivery record and return True; return False if this claim has one already. The table's primary key
    decides between concurrent requests."""
    delivery_id = ctx.keeps = new_id("dlv")
    return insert_new(
        ctx.tx,
        book,
        **what,
        operation_id=operation_id,
        claim_epoch=epoch,
        id=delivery_id,
        instance_id=instance_id,
        principal_id=ctx.principal.id,
        delivered_at=ctx.now,
        repeatable=1,
    )


def uses_of(tx: Connection, credential_id: str) -> list[UseRow]:
    """Return the time of the credential's last delivery for each instance and version, latest first."""
    return _USES.all(tx, credential=credential_id)


def forget_instance(tx: Connection, instance_id: str) -> None:
    """Delete the bindings, delivery records and stored responses of a deleted instance."""
    for book in BOOKS:
        _forget_answers(tx, book, book.c.instance_id == instance_id)
    for table in (credential_bindings, *BOOKS):
        tx.execute(delete(table).where(table.c.instance_id == instance_id))


def forget_old_answers(tx: Connection, now: int) -> int:
    """Delete stored responses that are too old to be repeated, up to `AT_ONCE` per table; return the larger number."""
    return max(_forget_some(tx, book, book.c.delivered_at <= now - LIVES_S * 1000) for book in BOOKS)


def forget_credential(tx: Connection, credential_id: str) -> None:
    _forget_answers(tx, credential_deliveries, credential_deliveries.c.credential_id == credential_id)


def forget_secrets(tx: Connection, secret_ids: list[str]) -> None:
    _forget_answers(tx, secret_deliveries, secret_deliveries.c.secret_id.in_(secret_ids))


def _forget_answers(tx: Connection, book: Table, which: ColumnElement[bool]) -> None:
    """Delete the responses that are stored for repeated requests; the delivery records stay."""
    while _forget_some(tx, book, which):
        pass


def _forget_some(tx: Connection, book: Table, which: ColumnElement[bool]) -> int:
    """Delete at most `AT_ONCE` of the responses that are stored for repeated requests; return how many."""
    d = book.c
    ids = list(tx.execute(select(d.id).where(d.repeatable == 1, which).limit(AT_ONCE)).scalars())
    if ids:
        requests.forget(tx, ids)
        tx.execute(update(book).where(d.id.in_(ids)).values(repeatable=0))
    return len(ids)
