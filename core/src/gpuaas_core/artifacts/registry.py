"""Registering artifacts: a name and a version for content that never changes. Called by the artifact routes.

What is not known yet (the digest of a file, the layer of a manifest) is read from the source between two transactions:
`prepare` says what to read, `look` reads, `register` writes it down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, update

from ..access.context import Context
from ..access.evaluate import Scope
from ..custody.vault import Vault
from ..kit.db import insert_new
from ..kit.ids import new_id
from ..kit.problems import Invalid, NotFound
from ..ledger.events import declare
from ..policy.evaluate import Overlay
from ..policy.reads import overlays_for
from . import pushed, schemas
from .addresses import checked_path
from .errors import NotUploaded, VersionTaken
from .owners import PLATFORM, owner_of, tier_of
from .reading import Found, Place, Reader, into_cache, layer_of
from .resolving import artifact_row, artifacts_seen, judged, require_source
from .sources import BUILTIN, STORE, opened_credential, source_row
from .states import ARTIFACT, REGISTERED
from .tables import artifacts

OCTETS = "application/octet-stream"
# Per kind of source: what a reference consists of, and what must be said.
REFERENCES: dict[str, tuple[set[str], set[str]]] = {
    "blob": ({"path"}, {"path"}),
    "oci": ({"repository", "manifest", "layer"}, {"repository", "manifest"}),
    STORE: (set(), set()),
}
_PARTS = ("path", "repository", "manifest", "layer")

declare(
    {
        "artifacts.artifact.registered": "An artifact has a name, a version and a digest that never change.",
        "artifacts.artifact.withdrawn": "An artifact is delivered to nobody any more.",
    }
)


@dataclass(frozen=True)
class Prepared:
    place: Place | None  # None: the core's own store
    found: Found | None  # None: to be read


def prepare(ctx: Context, vault: Vault, body: schemas.Register) -> Prepared:
    """What is asked for is allowed and complete; the source is not contacted before that is known."""
    source = _usable(ctx, body.source_id)
    reference = _reference(source.kind, body)
    if source.kind == STORE:
        return Prepared(None, _pushed(ctx, body))
    place = place_of(ctx, vault, source, reference)
    if (body.sha256 is None) != (body.size is None):
        raise Invalid("Give `sha256` and `size`, or neither: then the artifact is read now.")
    if source.kind == "oci" or body.sha256 is None or body.size is None:
        return Prepared(place, None)
    return Prepared(place, Found(body.sha256, body.size))


async def look(reader: Reader, prepared: Prepared) -> tuple[Found, dict[str, str]]:
    """The content as it is registered, and its full reference."""
    found, reference = await _read(reader, prepared)
    largest = reader.store.bounds.largest
    if found.size > largest:
        raise Invalid(f"It has {found.size} bytes; an artifact has at most {largest} on this platform.")
    return found, reference


async def _read(reader: Reader, prepared: Prepared) -> tuple[Found, dict[str, str]]:
    place, found = prepared.place, prepared.found
    if found is not None:
        return found, place.reference if place else {}
    assert place is not None, "the store knows what it has"
    if place.kind == "oci":
        layer, digest = await reader.ask(layer_of, place)
        return layer, place.reference | {"layer": digest}
    return await reader.ask(into_cache, reader.store, place, None), place.reference


def register(ctx: Context, body: schemas.Register, found: Found, reference: dict[str, str]) -> schemas.ArtifactView:
    source = _usable(ctx, body.source_id)  # once more: reading may have taken a while
    if body.sha256 not in (None, found.sha256) or body.size not in (None, found.size):
        raise Invalid(f"The content has sha256 {found.sha256} and {found.size} bytes, which is not what was said.")
    ctx.resource_id = new_id("art")
    row = {
        "id": ctx.resource_id,
        "owner": owner_of(ctx.scope),
        "source_id": source.id,
        "name": body.name,
        "version": body.version,
        "kind": source.kind,
        "reference": reference,
        "sha256": found.sha256,
        "size": found.size,
        "media_type": body.media_type or found.media_type or OCTETS,
        "state": REGISTERED,
        "created_by": ctx.principal.id,
        "created_at": ctx.now,
    }
    if not insert_new(ctx.tx, artifacts, **row):
        raise VersionTaken(f"{body.name} {body.version} is registered already.")
    if source.kind == STORE:
        pushed.hold(ctx.tx, row["owner"])
        _pushed(ctx, body)  # still there, and it cannot go any more
    return _told(ctx, ctx.resource_id, "registered")


def withdraw(ctx: Context, artifact_id: str, reason: str) -> schemas.ArtifactView:
    row = artifact_row(ctx.tx, ctx.scope, artifact_id)
    if row.owner != owner_of(ctx.scope):
        raise NotFound("There is no such artifact of your own here.")
    ctx.resource_id = row.id
    change = {
        "state": ARTIFACT.after(row.state, "withdraw"),
        "withdrawn_at": ctx.now,
        "withdraw_reason": reason or None,
    }
    same = (artifacts.c.id == row.id) & (artifacts.c.state == row.state)
    if not ctx.tx.execute(update(artifacts).where(same).values(**change)).rowcount:
        ARTIFACT.after("withdrawn", "withdraw")  # somebody else just did
    if row.source_id == BUILTIN:
        pushed.hold(ctx.tx, row.owner)
        pushed.release(ctx.tx, row.owner, row.sha256)
    return _told(ctx, row.id, "withdrawn", reason=reason)


def listed(scope: Scope, *, name: str | None, withdrawn: bool) -> Any:
    query = artifacts_seen(scope)
    query = query.where(artifacts.c.name == name) if name else query
    return query if withdrawn else query.where(artifacts.c.state == REGISTERED)


def view(row: Row[Any]) -> schemas.ArtifactView:
    return schemas.ArtifactView.model_validate(_shown(row))


def project_view(ctx: Context, row: Row[Any], overlays: Sequence[Overlay]) -> schemas.ProjectArtifactView:
    """`overlays`: of the project, read once for a whole page."""
    allowed, reason = judged(ctx.tx, overlays, row)
    return schemas.ProjectArtifactView.model_validate(_shown(row) | {"allowed": allowed, "reason": reason})


def place_of(ctx: Context, vault: Vault, source: Row[Any], reference: dict[str, str]) -> Place:
    return Place(
        source_id=source.id,
        kind=source.kind,
        base_url=source.base_url,
        port=source.port,
        private=bool(source.private_addresses),
        reference=reference,
        credential=opened_credential(ctx.tx, vault, source),
    )


def _usable(ctx: Context, source_id: str) -> Row[Any]:
    """A source the caller may register from; its policies must let it, too, since registering may read from it."""
    source = source_row(ctx.tx, ctx.scope, source_id)
    foreign = source.owner == PLATFORM != owner_of(ctx.scope)
    if foreign and source.kind != STORE and not source.open_to_tenants:
        raise Invalid(f"The platform registers what comes from {source.policy_name!r}; it is not open to tenants.")
    require_source(ctx.tx, overlays_for(ctx.tx, ctx.scope), source)
    return source


def _reference(kind: str, body: schemas.Register) -> dict[str, str]:
    said = {name: value for name in _PARTS if (value := getattr(body, name)) is not None}
    known, needed = REFERENCES[kind]
    if not needed <= said.keys() <= known:
        words = ", ".join(sorted(needed)) or "only `sha256`"
        raise Invalid(f"An artifact of a source of the kind {kind} is referred to by {words}.")
    if "path" in said:
        checked_path("/" + said["path"].removeprefix("/"))
    return said


def _pushed(ctx: Context, body: schemas.Register) -> Found:
    if body.sha256 is None:
        raise Invalid("Give the `sha256` of the content that was pushed.")
    size = pushed.has(ctx.tx, owner_of(ctx.scope), body.sha256)
    if size is None:
        raise NotUploaded(f"Nobody of you pushed sha256:{body.sha256}.")
    return Found(body.sha256, size)


def _shown(row: Row[Any]) -> dict[str, Any]:
    return dict(row._mapping) | {"tier": tier_of(row.owner), "available_actions": list(ARTIFACT.moves[row.state])}


def _told(ctx: Context, artifact_id: str, what: str, **more: Any) -> schemas.ArtifactView:
    row = artifact_row(ctx.tx, ctx.scope, artifact_id)
    told = {"name": row.name, "artifact_version": row.version, "source": row.source, "state": row.state}
    ctx.emit(f"artifacts.artifact.{what}", row.id, told | {"sha256": row.sha256, "size_bytes": row.size} | more)
    return view(row)
