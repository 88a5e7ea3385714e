"""Content pushed into the core's own store, and how much storage a tenant uses. `store` handles the bytes.

Only an owner that pushed content may register it: knowing a digest is not proof of having the content. Files are shared
between owners, rows are not.
"""

from sqlalchemy import Connection, Exists, delete, exists, func, select

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.db import hold_name, insert_new
from . import schemas
from .errors import StorageQuotaExceeded
from .owners import PLATFORM, owner_of
from .sources import BUILTIN
from .states import REGISTERED
from .tables import artifact_blobs, artifacts

UNUSED_MS = 24 * 3600 * 1000  # after this, pushed but unregistered content is deleted

declare({"artifacts.content.pushed": "Content was pushed into the core's own store."})


def hold(tx: Connection, owner: str) -> None:
    """Lock this owner's storage accounting until the transaction ends."""
    hold_name(tx, f"artifact-storage:{owner}")


def used(tx: Connection, owner: str) -> int:
    total = select(func.coalesce(func.sum(artifact_blobs.c.size), 0)).where(artifact_blobs.c.owner == owner)
    return int(tx.execute(total).scalar_one())


def check_room(tx: Connection, owner: str, sha256: str, size: int, quota: int) -> None:
    """Content that is stored already uses no additional space; the platform's own content has no limit."""
    have = used(tx, owner)
    if owner != PLATFORM and have + size > quota and has(tx, owner, sha256) is None:
        figures = {"quota_bytes": quota, "used_bytes": have, "asked_bytes": size}
        sentence = f"The tenant uses {have} of {quota} bytes; {size} more bytes do not fit."
        raise StorageQuotaExceeded(sentence, extra={"storage": figures})


def take(ctx: Context, sha256: str, size: int, quota: int) -> schemas.BlobView:
    """Record the owner of a file that is in place already, if the quota allows it."""
    owner = owner_of(ctx.scope)
    hold(ctx.tx, owner)
    row = {"owner": owner, "sha256": sha256, "size": size, "created_by": ctx.principal.id, "created_at": ctx.now}
    check_room(ctx.tx, owner, sha256, size, quota)
    if insert_new(ctx.tx, artifact_blobs, **row):
        ctx.emit("artifacts.content.pushed", sha256, {"sha256": sha256, "size_bytes": size})
    ctx.resource_id = sha256
    bound = None if owner == PLATFORM else quota
    return schemas.BlobView(sha256=sha256, size=size, used_bytes=used(ctx.tx, owner), quota_bytes=bound)


def has(tx: Connection, owner: str, sha256: str) -> int | None:
    """The size, if this owner pushed the content."""
    mine = (artifact_blobs.c.owner == owner) & (artifact_blobs.c.sha256 == sha256)
    return tx.execute(select(artifact_blobs.c.size).where(mine)).scalar()


def release(tx: Connection, owner: str, sha256: str) -> None:
    """Called after an artifact was withdrawn: deletes the row unless another artifact needs it."""
    mine = (artifact_blobs.c.owner == owner) & (artifact_blobs.c.sha256 == sha256)
    tx.execute(delete(artifact_blobs).where(mine, ~_needed()))


def forget_unused(tx: Connection, now: int) -> int:
    b, deleted = artifact_blobs.c, 0
    unused = (b.created_at < now - UNUSED_MS) & ~_needed()
    for owner in tx.execute(select(b.owner).where(unused).distinct().order_by(b.owner)).scalars().all():
        hold(tx, owner)
        deleted += tx.execute(delete(artifact_blobs).where(b.owner == owner, unused)).rowcount
    return deleted


def named(tx: Connection) -> set[str]:
    return set(tx.execute(select(artifact_blobs.c.sha256)).scalars())


def _needed() -> Exists:
    a, b = artifacts.c, artifact_blobs.c
    same = (a.owner == b.owner) & (a.sha256 == b.sha256) & (a.source_id == BUILTIN) & (a.state == REGISTERED)
    return exists().where(same)
