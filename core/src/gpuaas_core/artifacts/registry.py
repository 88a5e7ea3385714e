"""Registration of artifacts: a name and a version for immutable content. Called by the artifact routes.

What the request leaves out (the digest of a file, the layer of a manifest) is read from the source between two
transactions: `prepare` checks the request, `read_content` reads from the source, `register` writes the row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import update

from ..authz.context import Context
from ..authz.evaluate import Scope
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.db import insert_new
from ..kit.ids import new_id
from ..kit.problems import Invalid, NotFound
from ..kit.rows import Query
from ..policy.evaluate import Overlay
from ..policy.reads import overlays_for
from . import schemas, uploads
from .addresses import checked_path
from .errors import NotUploaded, VersionTaken
from .fetch import Found, Place, Reader, into_cache, layer_of
from .owners import PLATFORM, owner_of, tier_of
from .resolution import artifact_row, artifacts_seen, judged, require_source
from .rows import ArtifactRow, SourceRow
from .sources import BUILTIN, STORE, opened_credential, source_row
from .states import ARTIFACT, REGISTERED
from .tables import artifacts

OCTETS = "application/octet-stream"
# Per kind of source: the known and the required parts of a reference.
REFERENCES: dict[str, tuple[set[str], set[str]]] = {
    "blob": ({"path"}, {"path"}),
    "oci": ({"repository", "manifest", "layer"}, {"repository", "manifest"}),
    STORE: (set(), set()),
}
Reference = Mapping[str, str]

declare(
    {
        "artifacts.artifact.registered": "An artifact was registered under a name, a version and a digest.",
        "artifacts.artifact.withdrawn": "An artifact was withdrawn and is no longer delivered.",
    }
)


@dataclass(frozen=True)
class Prepared:
    place: Place | None  # None: the core's own store
    found: Found | None  # None: not known yet, read it from the source


def prepare(ctx: Context, vault: Vault, body: schemas.Register) -> Prepared:
    """Check that the request is allowed and complete, without contacting the source. The result has the place to read
    from and, if they are known already, the content's digest and size."""
    source = _usable(ctx, body.source_id)
    reference = _reference(source.kind, body)
    if source.kind == STORE:
        return Prepared(None, _pushed(ctx, body))
    place = place_of(ctx, vault, source, reference)
    if (body.sha256 is None) != (body.size is None):
        raise Invalid("Send both `sha256` and `size`, or neither to have the artifact read now.")
    if source.kind == "oci" or body.sha256 is None or body.size is None:
        return Prepared(place, None)
    return Prepared(place, Found(body.sha256, body.size))


async def read_content(reader: Reader, prepared: Prepared) -> tuple[Found, Reference]:
    """Return the content's digest and size, and its full reference. Contacts the source if they are not known yet, and
    raises Invalid if the content is too large."""
    found, reference = await _read(reader, prepared)
    largest = reader.store.bounds.largest
    if found.size > largest:
        raise Invalid(f"The artifact has {found.size} bytes; this platform allows at most {largest}.")
    return found, reference


async def _read(reader: Reader, prepared: Prepared) -> tuple[Found, Reference]:
    place, found = prepared.place, prepared.found
    if found is not None:
        return found, place.reference if place else {}
    assert place is not None, "content of the core's own store needs no read"
    if place.kind == "oci":
        layer, digest = await reader.ask(layer_of, place)
        return layer, {**place.reference, "layer": digest}
    return await reader.ask(into_cache, reader.store, place, None), place.reference


def register(ctx: Context, body: schemas.Register, found: Found, reference: Reference) -> schemas.ArtifactView:
    source = _usable(ctx, body.source_id)  # checked again: reading may have taken a while
    if body.sha256 not in (None, found.sha256) or body.size not in (None, found.size):
        raise Invalid(f"The content has sha256 {found.sha256} and {found.size} bytes, which differs from the request.")
    ctx.resource_id = new_id("art")
    owner = owner_of(ctx.scope)
    row = {
        "id": ctx.resource_id,
        "owner": owner,
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
        uploads.hold(ctx.tx, owner)
        _pushed(ctx, body)  # checked again, now under the lock
    return _emit(ctx, ctx.resource_id, "registered")


def withdraw(ctx: Context, artifact_id: str, reason: str) -> schemas.ArtifactView:
    row = artifact_row(ctx.tx, ctx.scope, artifact_id)
    if row.owner != owner_of(ctx.scope):
        raise NotFound("The tenant or platform has no such artifact of its own.")
    ctx.resource_id = row.id
    change = {
        "state": ARTIFACT.after(row.state, "withdraw"),
        "withdrawn_at": ctx.now,
        "withdraw_reason": reason or None,
    }
    same = (artifacts.c.id == row.id) & (artifacts.c.state == row.state)
    if not ctx.tx.execute(update(artifacts).where(same).values(**change)).rowcount:
        ARTIFACT.after("withdrawn", "withdraw")  # withdrawn by a concurrent request: raises 409
    if row.source_id == BUILTIN:
        uploads.hold(ctx.tx, row.owner)
        uploads.release(ctx.tx, row.owner, row.sha256)
    return _emit(ctx, row.id, "withdrawn", reason=reason)


def listed(scope: Scope, *, name: str | None, withdrawn: bool) -> Query[ArtifactRow]:
    query = artifacts_seen(scope)
    query = query.where(artifacts.c.name == name) if name else query
    return query if withdrawn else query.where(artifacts.c.state == REGISTERED)


def view(row: ArtifactRow) -> schemas.ArtifactView:
    return schemas.ArtifactView.model_validate(_columns(row))


def project_view(ctx: Context, row: ArtifactRow, overlays: Sequence[Overlay]) -> schemas.ProjectArtifactView:
    """Return the artifact with whether the project may use it.
    `overlays`: the project's policies, read once for a whole page."""
    allowed, reason = judged(ctx.tx, overlays, row)
    return schemas.ProjectArtifactView.model_validate({**_columns(row), "allowed": allowed, "reason": reason})


def place_of(ctx: Context, vault: Vault, source: SourceRow, reference: Reference) -> Place:
    return Place(
        source_id=source.id,
        kind=source.kind,
        base_url=source.base_url,
        port=source.port,
        private=bool(source.private_addresses),
        reference=reference,
        credential=opened_credential(ctx.tx, vault, source),
    )


def _usable(ctx: Context, source_id: str) -> SourceRow:
    """Return the source if the caller may register artifacts from it and the policies allow it;
    otherwise raise an error."""
    source = source_row(ctx.tx, ctx.scope, source_id)
    foreign = source.owner == PLATFORM != owner_of(ctx.scope)
    if foreign and source.kind != STORE and not source.open_to_tenants:
        raise Invalid(f"Only the platform may register artifacts of {source.policy_name!r}; it is not open to tenants.")
    require_source(ctx.tx, overlays_for(ctx.tx, ctx.scope), source)
    return source


def _reference(kind: str, body: schemas.Register) -> Reference:
    parts = {"path": body.path, "repository": body.repository, "manifest": body.manifest, "layer": body.layer}
    given = {name: value for name, value in parts.items() if value is not None}
    known, needed = REFERENCES[kind]
    if not needed <= given.keys() <= known:
        wanted = ", ".join(sorted(needed)) or "only `sha256`"
        raise Invalid(f"An artifact of a {kind} source is referenced by {wanted}.")
    if "path" in given:
        checked_path("/" + given["path"].removeprefix("/"))
    return given


def _pushed(ctx: Context, body: schemas.Register) -> Found:
    if body.sha256 is None:
        raise Invalid("Send the `sha256` of the pushed content.")
    size = uploads.has(ctx.tx, owner_of(ctx.scope), body.sha256)
    if size is None:
        raise NotUploaded(f"sha256:{body.sha256} was not pushed by this tenant or platform.")
    return Found(body.sha256, size)


def _columns(row: ArtifactRow) -> Mapping[str, object]:
    return vars(row) | {"tier": tier_of(row.owner), "available_actions": list(ARTIFACT.moves[row.state])}


def _emit(ctx: Context, artifact_id: str, what: str, **more: str) -> schemas.ArtifactView:
    row = artifact_row(ctx.tx, ctx.scope, artifact_id)
    data = {"name": row.name, "artifact_version": row.version, "source": row.source, "state": row.state}
    ctx.emit(f"artifacts.artifact.{what}", row.id, data | {"sha256": row.sha256, "size_bytes": row.size} | more)
    return view(row)
