"""Which instance may receive a credential, and the records of deliveries: one per claim and version.

The sealed answer is kept as long as it can be opened: a caller that lost it repeats the request with the same
Idempotency-Key. Any other second request is rejected.
"""

from typing import Any

from sqlalchemy import Connection, Row, Table, delete, func, select, update

from ..authz.context import Context
from ..idempotency import requests
from ..kit.db import insert_new
from ..kit.ids import new_id
from ..kit.problems import Problem
from .delivery import LIVES_S
from .states import REVOKED
from .tables import credential_bindings, credential_deliveries, credentials, secret_deliveries

AT_ONCE = 500
BOOKS = (credential_deliveries, secret_deliveries)


class AlreadyDelivered(Problem):
    status, code, title = 410, "already_delivered", "Already delivered to this claim"
    way_out = (
        f"If the answer was lost, repeat the request with the same Idempotency-Key within {LIVES_S} s. "
        "After a crash, claim the operation again: a new claim epoch gets a delivery of its own."
    )


def bind(ctx: Context, credential_id: str, instance_id: str) -> bool:
    """False: it was bound already."""
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
    """The credential's id.

    A name can be reused after a revocation; the credential that is not revoked takes precedence.
    """
    c, b = credentials.c, credential_bindings.c
    mine = select(c.id).join(credential_bindings, b.credential_id == c.id)
    mine = mine.where(b.instance_id == instance_id, c.name == name)
    return tx.execute(mine.order_by(c.state == REVOKED, c.id.desc()).limit(1)).scalar()


def deliver_once(ctx: Context, version: Row[Any], instance_id: str, operation_id: str, epoch: int) -> None:
    what = {"credential_id": version.credential_id, "version": version.version}
    if not _first(ctx, credential_deliveries, what, instance_id, operation_id, epoch):
        raise AlreadyDelivered(f"Version {version.version} was delivered to claim epoch {epoch} of {operation_id}.")


def deliver_secret_once(ctx: Context, secret: Row[Any], operation_id: str, epoch: int) -> None:
    """Each version of a runtime secret has a row of its own."""
    if not _first(ctx, secret_deliveries, {"secret_id": secret.id}, secret.instance_id, operation_id, epoch):
        detail = f"Version {secret.version} of {secret.name!r} was delivered to claim epoch {epoch} of {operation_id}."
        raise AlreadyDelivered(detail)


def _first(ctx: Context, book: Table, what: dict[str, Any], instance_id: str, operation_id: str, epoch: int) -> bool:
    """Insert into the record: the table's key decides, also between concurrent requests."""
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


def uses_of(tx: Connection, credential_id: str) -> list[Any]:
    """Per instance and version, the time of the last delivery; the latest first."""
    d = credential_deliveries.c
    last = func.max(d.delivered_at).label("last_used_at")
    query = select(d.instance_id, d.version, last).where(d.credential_id == credential_id)
    return list(
        tx.execute(query.group_by(d.instance_id, d.version).order_by(last.desc(), d.version.desc(), d.instance_id))
    )


def forget_instance(tx: Connection, instance_id: str) -> None:
    """The instance was deleted: remove its bindings."""
    for book in BOOKS:
        _forget_answers(tx, book, book.c.instance_id == instance_id)
    for table in (credential_bindings, *BOOKS):
        tx.execute(delete(table).where(table.c.instance_id == instance_id))


def forget_old_answers(tx: Connection, now: int) -> int:
    for book in BOOKS:
        _forget_answers(tx, book, book.c.delivered_at <= now - LIVES_S * 1000)
    return 0


def forget_credential(tx: Connection, credential_id: str) -> None:
    _forget_answers(tx, credential_deliveries, credential_deliveries.c.credential_id == credential_id)


def forget_secrets(tx: Connection, secret_ids: list[str]) -> None:
    _forget_answers(tx, secret_deliveries, secret_deliveries.c.secret_id.in_(secret_ids))


def _forget_answers(tx: Connection, book: Table, which: Any) -> None:
    """Delete the sealed answers kept for repeated requests; the delivery records stay."""
    d = book.c
    while ids := list(tx.execute(select(d.id).where(d.repeatable == 1, which).limit(AT_ONCE)).scalars()):
        requests.forget(tx, ids)
        tx.execute(update(book).where(d.id.in_(ids)).values(repeatable=0))
