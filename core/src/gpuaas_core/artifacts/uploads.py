"""Uploads to the core's own store, and the storage quota of a tenant. `store` reads and writes the files.

Only an owner that uploaded content may register it: knowing a digest does not prove having the content. Owners of the
same content share one file, but each has a row of its own.
"""

import asyncio

from sqlalchemy import Connection, Exists, delete, exists, func, select

from ..authz.context import Context
from ..events.event_log import declare
from ..http.call import Platform
from ..kit.db import AT_ONCE, delete_some, hold_name, insert_new
from . import schemas
from .errors import StorageQuotaExceeded
from .fetch import Reader
from .owners import PLATFORM, owner_of
from .sources import BUILTIN
from .states import REGISTERED
from .tables import artifact_blobs, artifacts

UNUSED_MS = 24 * 3600 * 1000  # after this, pushed but unregistered content is deleted

declare({"artifacts.content.pushed": "Content was uploaded to the platform's own artifact store."})


def hold(tx: Connection, owner: str) -> None:
    """Lock this owner's storage accounting until the transaction ends."""
    hold_name(tx, f"artifact-storage:{owner}")


def used(tx: Connection, owner: str) -> int:
    total = select(func.coalesce(func.sum(artifact_blobs.c.size), 0)).where(artifact_blobs.c.owner == owner)
    return int(tx.execute(total).scalar_one())


def check_room(tx: Connection, owner: str, sha256: str, size: int, quota: int) -> None:
    """Raise StorageQuotaExceeded if the content does not fit into the owner's quota. Content that the owner stores
    already needs no space, and the platform has no quota."""
    have = used(tx, owner)
    if owner != PLATFORM and have + size > quota and has(tx, owner, sha256) is None:
        figures = {"quota_bytes": quota, "used_bytes": have, "asked_bytes": size}
        sentence = f"The tenant uses {have} of {quota} bytes; {size} more bytes do not fit."
        raise StorageQuotaExceeded(sentence, extra={"storage": figures})


def take(ctx: Context, sha256: str, size: int, quota: int) -> schemas.BlobView:
    """Record that the tenant or platform stores this uploaded file.
    Raises StorageQuotaExceeded if the quota does not allow it."""
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
    """Return the size of the content if this owner uploaded it, otherwise None."""
    mine = (artifact_blobs.c.owner == owner) & (artifact_blobs.c.sha256 == sha256)
    return tx.execute(select(artifact_blobs.c.size).where(mine)).scalar()


def release(tx: Connection, owner: str, sha256: str) -> None:
    """Delete the owner's row of the content, unless a registered artifact still uses the content.
    Called after an artifact was withdrawn."""
    mine = (artifact_blobs.c.owner == owner) & (artifact_blobs.c.sha256 == sha256)
    tx.execute(delete(artifact_blobs).where(mine, ~_needed()))


def forget_unused(tx: Connection, now: int) -> int:
    """Delete rows of content that was pushed a day ago or earlier and that no artifact uses,
    about `AT_ONCE` rows per call; return how many."""
    b, deleted = artifact_blobs.c, 0
    unused = (b.created_at < now - UNUSED_MS) & ~_needed()
    for owner in tx.execute(select(b.owner).where(unused).distinct().order_by(b.owner).limit(AT_ONCE)).scalars().all():
        hold(tx, owner)
        deleted += delete_some(tx, artifact_blobs, (b.owner == owner) & unused)
        if deleted >= AT_ONCE:
            break
    return deleted


async def sweep(platform: Platform) -> int:
    """Delete stored files that no row refers to, and unfinished uploads; return how many."""
    reader = platform.services.find(Reader)
    if reader is None:
        return 0
    named = await platform.db.read(_named)
    return await asyncio.to_thread(reader.store.sweep, named.__contains__)


def _named(tx: Connection) -> set[str]:
    return set(tx.execute(select(artifact_blobs.c.sha256)).scalars())


def _needed() -> Exists:
    a, b = artifacts.c, artifact_blobs.c
    same = (a.owner == b.owner) & (a.sha256 == b.sha256) & (a.source_id == BUILTIN) & (a.state == REGISTERED)
    return exists().where(same)
