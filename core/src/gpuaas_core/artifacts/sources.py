"""Creates and changes artifact sources of the platform and of tenants. Called by the source routes; `resolution`
decides whether a project may use a source.

A credential is sealed for its source and that source's address: in another row, or after the address was changed in the
database, it cannot be unsealed.
"""

import json

from sqlalchemy import Connection, bindparam, func, select, update

from ..authz.context import Context
from ..authz.evaluate import Scope
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.db import insert_new
from ..kit.ids import new_id
from ..kit.problems import Invalid, NotFound
from ..kit.rows import Query
from ..kit.vault import declare_sealed
from ..kit.wire import canonical, counted
from ..policy.evaluate import NAME
from ..tenancy.reads import tenant_slug
from . import schemas
from .addresses import checked
from .errors import SourceInUse, SourceNameTaken
from .owners import owner_of, owners_seen, seen_by, tier_of
from .rows import SourceId, SourceRow
from .states import ENABLED, REGISTERED, REMOVED, SOURCE
from .tables import artifact_sources, artifacts

BUILTIN = "asrc_builtin"  # the core's own store; its row comes with the schema
STORE = "store"

declare(
    {
        "artifacts.source.created": "An artifact source was created.",
        "artifacts.source.enabled": "An artifact source was re-enabled; its artifacts are delivered again.",
        "artifacts.source.disabled": "An artifact source was disabled; its artifacts are no longer delivered.",
        "artifacts.source.removed": "An artifact source and its credential were removed.",
        "artifacts.source.credential_set": "The credential of an artifact source was replaced or removed.",
    }
)
_EVENTS = {"enable": "enabled", "disable": "disabled", "remove": "removed"}

declare_sealed(
    artifact_sources,
    "sealed_credential",
    tenant="owner",
    bound_to=lambda row: bound_to(row.owner, row.id, row.base_url),
)

_s = artifact_sources.c
SOURCES = Query(select(artifact_sources), SourceRow)
_SEEN = SOURCES.where(_s.id == bindparam("source"), _s.owner.in_(bindparam("owners", expanding=True)))
_OWN_LOCKED = SOURCES.where(_s.id == bindparam("source"), _s.owner == bindparam("owner")).locked()
_REGISTERED = (
    select(func.count())
    .select_from(artifacts)
    .where(artifacts.c.source_id == bindparam("source"), artifacts.c.state == REGISTERED)
)


def create(ctx: Context, vault: Vault, body: schemas.CreateSource) -> schemas.SourceView:
    private = isinstance(body, schemas.CreatePlatformSource) and body.private_addresses
    shared = isinstance(body, schemas.CreatePlatformSource) and body.open_to_tenants
    address = checked(body.base_url, private=private, port=body.port)
    ctx.resource_id = new_id("asrc")
    row = {
        "id": ctx.resource_id,
        "owner": owner_of(ctx.scope),
        "name": body.name,
        "policy_name": _policy_name(ctx, body.name),
        "kind": body.kind,
        "base_url": f"{address.scheme}://{address.authority}{address.path}",
        "host": address.host,
        "port": body.port,
        "private_addresses": int(private),
        "open_to_tenants": int(shared),
        "state": ENABLED,
        "created_by": ctx.principal.id,
        "created_at": ctx.now,
    }
    if not insert_new(ctx.tx, artifact_sources, **row):
        raise SourceNameTaken(f"An artifact source named {row['policy_name']!r} exists already.")
    made = source_row(ctx.tx, ctx.scope, ctx.resource_id)
    _seal(ctx, vault, made, body.credential)
    return _emit(ctx, made.id, "created")


def decide(ctx: Context, source_id: str, action: str, reason: str) -> schemas.SourceView:
    row = own_row(ctx, source_id)
    state = SOURCE.after(row.state, action)
    change: dict[str, object] = {"state": state, "state_reason": reason or None}
    if state == REMOVED:
        _check_unused(ctx.tx, row)
        change |= {"sealed_credential": None, "credential_kind": None}
    _set(ctx.tx, row.id, **change)
    return _emit(ctx, row.id, _EVENTS[action], reason=reason)


def set_credential(ctx: Context, vault: Vault, source_id: str, body: schemas.SetCredential) -> schemas.SourceView:
    row = own_row(ctx, source_id)
    if row.state == REMOVED or row.kind == STORE:
        raise Invalid("The core's own store and removed sources have no credential.")
    _seal(ctx, vault, row, body.credential)
    return _emit(ctx, row.id, "credential_set")


def opened_credential(tx: Connection, vault: Vault, row: SourceRow) -> dict[str, str] | None:
    """Return the source's credential, unsealed, or None if the source has none.
    Called right before the core contacts the source."""
    if row.sealed_credential is None:
        return None
    return json.loads(vault.unseal(tx, row.owner, row.sealed_credential, _bound_to(row)))


def sources_of(scope: Scope) -> Query[SourceRow]:
    return SOURCES.where(seen_by(_s.owner, scope), _s.state != REMOVED)


def source_row(tx: Connection, scope: Scope, source_id: str) -> SourceRow:
    row = _SEEN.first(tx, source=source_id, owners=owners_seen(scope))
    if row is None:
        raise NotFound("Artifact source not found.")
    return row


def own_row(ctx: Context, source_id: str) -> SourceRow:
    """Lock the source for a change and return it. Raises NotFound for a source of another owner: a tenant sees the
    platform's sources but cannot change them."""
    row = _OWN_LOCKED.first(ctx.tx, source=source_id, owner=owner_of(ctx.scope))
    if row is None:
        raise NotFound("The tenant or platform has no such artifact source of its own.")
    ctx.resource_id = row.id
    return row


def source_view(row: SourceRow) -> schemas.SourceView:
    actions = [name for name in SOURCE.moves[row.state] if (row.kind, name) != (STORE, "remove")]
    return schemas.SourceView.model_validate(vars(row) | {"tier": tier_of(row.owner), "available_actions": actions})


def bound_to(owner: str, source_id: str, base_url: str) -> str:
    return canonical(["artifact-source", owner, source_id, base_url])


def _bound_to(row: SourceRow) -> str:
    return bound_to(row.owner, row.id, row.base_url)


def _policy_name(ctx: Context, name: str) -> str:
    """Return the source's name in policies. For a tenant's source it is `tenant.source`, so that it never equals the
    name of a platform source."""
    if ctx.scope.tenant_id is None:
        return name
    full = f"{tenant_slug(ctx.tx, ctx.scope.tenant_id)}.{name}"
    if not NAME.fullmatch(full):
        raise Invalid(f"Its name in policies would be {full!r}, longer than 63 characters. Choose a shorter name.")
    return full


def _seal(ctx: Context, vault: Vault, row: SourceRow, credential: schemas.Credential | None) -> None:
    if credential and credential.kind == "s3" and row.kind != "blob":
        raise Invalid("An S3 key pair needs a source of kind `blob`.")
    plain = canonical(credential.model_dump(exclude_none=True)).encode() if credential else None
    sealed = vault.seal(ctx.tx, row.owner, plain, _bound_to(row)) if plain else None
    _set(ctx.tx, row.id, sealed_credential=sealed, credential_kind=credential.kind if credential else None)


def _check_unused(tx: Connection, row: SourceRow) -> None:
    if row.kind == STORE:
        raise SourceInUse("The core's own store cannot be removed. Disable it to stop deliveries from it.")
    number = tx.execute(_REGISTERED, {"source": row.id}).scalar_one()
    if number:
        raise SourceInUse(f"{counted(number, 'registered artifact')} come from {row.policy_name!r}.")


def _set(tx: Connection, source_id: SourceId, **change: object) -> None:
    tx.execute(update(artifact_sources).where(artifact_sources.c.id == source_id).values(**change))


def _emit(ctx: Context, source_id: str, what: str, **more: str) -> schemas.SourceView:
    row = source_row(ctx.tx, ctx.scope, source_id)
    data = {"name": row.name, "source": row.policy_name, "source_kind": row.kind, "state": row.state}
    ctx.emit(f"artifacts.source.{what}", row.id, data | more)
    return source_view(row)
