"""Access credentials of a project: key pairs. Only the controller that a private key is delivered to can read it.

A private key is sealed for its tenant, project, credential and version: in another row it cannot be unsealed. A
rotation adds a new version and keeps the old version for an overlap period; retiring a version or revoking the
credential deletes the private key in the same transaction.
"""

from sqlalchemy import ColumnElement, Connection, and_, bindparam, insert, select, update

from ..audit.audit_log import Entry
from ..authz.context import Context
from ..authz.evaluate import Scope
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.db import insert_new
from ..kit.ids import new_id
from ..kit.json_types import JsonValue
from ..kit.problems import NotFound, Problem
from ..kit.rows import Query
from ..kit.vault import declare_sealed
from ..kit.wire import canonical
from ..tenancy.reads import project_scope
from . import deliveries
from .rows import CredentialId, CredentialRow, ShownCredential, VersionRow
from .ssh_keys import SshKey
from .states import ACTIVE, COMPLETE, CREDENTIAL, REVOKE, ROTATE, ROTATING
from .tables import credential_versions, credentials

declare(
    {
        "custody.credential.created": "A credential was created: the platform generated its key pair.",
        "custody.credential.imported": "A credential was imported from a key pair of the project.",
        "custody.credential.rotation_started": (
            "The rotation of a credential was started: a new version was added, and the old version is valid until "
            "`expires_at`."
        ),
        "custody.credential.rotation_completed": (
            "The rotation of a credential was completed: only its newest version is valid."
        ),
        "custody.credential.revoked": "A credential was revoked and its private keys deleted.",
    }
)


class CredentialNameTaken(Problem):
    status, code, title = 409, "credential_name_taken", "Credential name already in use"
    way_out = "Choose another name, or rotate or revoke the existing credential."


class CredentialKeyNotNew(Problem):
    status, code, title = 409, "credential_key_not_new", "The credential already used this key"
    way_out = "Rotate to a new key, or omit `private_key`: the platform then generates a key."


declare_sealed(
    credential_versions,
    "sealed_private_key",
    tenant="tenant_id",
    bound_to=lambda row: _bound_to(row.tenant_id, row.project_id, row.credential_id, row.version),
)

_V = credential_versions.c
_CREDENTIALS = Query(select(credentials), CredentialRow)
_BY_ID = _CREDENTIALS.where(credentials.c.id == bindparam("credential"))
_CREDENTIAL = _BY_ID.where(credentials.c.project_id == bindparam("project"))
_LOCKED = _CREDENTIAL.locked()
_VERSIONS = (
    Query(select(credential_versions), VersionRow)
    .where(_V.credential_id == bindparam("credential"))
    .order_by(_V.version)
)
_WITH_NEWEST = Query(
    select(credentials, _V.origin, _V.algorithm, _V.public_key, _V.fingerprint).join(
        credential_versions, and_(_V.credential_id == credentials.c.id, _V.version == credentials.c.version)
    ),
    ShownCredential,
)


def create(ctx: Context, vault: Vault, project_id: str, name: str, key: SshKey) -> CredentialRow:
    credential_id = ctx.resource_id = CredentialId(new_id("cred"))
    row = {
        "id": credential_id,
        "tenant_id": ctx.scope.tenant_id,
        "project_id": project_id,
        "name": name,
        "kind": "ssh_key",
        "state": ACTIVE,
        "version": 1,
        "created_by": ctx.principal.id,
        "created_at": ctx.now,
    }
    if not insert_new(ctx.tx, credentials, **row):
        raise CredentialNameTaken(f"The project already has a credential named {name!r}.")
    made = credential_row(ctx.tx, project_id, credential_id)
    _add_version(ctx, vault, made, 1, key)
    _emit(ctx, credential_id, "created" if key.origin == "generated" else "imported")
    return made


def rotate(ctx: Context, vault: Vault, row: CredentialRow, key: SshKey, overlap_s: int) -> None:
    """Add a new version of the credential, which is delivered from now on. During the overlap period the old version
    can still be requested by its number. Raises CredentialKeyNotNew if the credential has had this key before."""
    state = CREDENTIAL.after(row.state, ROTATE)
    if any(version.fingerprint == key.fingerprint for version in versions_of(ctx.tx, row.id)):
        raise CredentialKeyNotNew(f"{key.fingerprint} was already a key of {row.name!r}.")
    ends = ctx.now + overlap_s * 1000
    _add_version(ctx, vault, row, row.version + 1, key)
    _set(ctx, row.id, state=state, version=row.version + 1, overlap_ends_at=ends)
    _emit(ctx, row.id, "rotation_started", expires_at=ends)


def complete_rotation(ctx: Context, row: CredentialRow, scope: Scope | None = None) -> None:
    state = CREDENTIAL.after(row.state, COMPLETE)
    _retire(ctx, row.id, credential_versions.c.version < row.version)
    _set(ctx, row.id, state=state, overlap_ends_at=None)
    _emit(ctx, row.id, "rotation_completed", scope=scope)


def revoke(ctx: Context, row: CredentialRow, reason: str) -> None:
    """Revoke the credential permanently. Deletes its private keys and the
    responses that are stored for repeated requests."""
    state = CREDENTIAL.after(row.state, REVOKE)
    _retire(ctx, row.id)
    deliveries.forget_credential(ctx.tx, row.id)
    _set(ctx, row.id, state=state, overlap_ends_at=None, revoked_at=ctx.now, revoke_reason=reason)
    _emit(ctx, row.id, "revoked", reason=reason)


def end_overlaps(ctx: Context) -> None:
    """Complete the rotations whose overlap period has ended, with an event and an audit row each.
    Called by housekeeping."""
    c = credentials.c
    over = _CREDENTIALS.where(c.state == ROTATING, c.overlap_ends_at <= ctx.now).order_by(c.created_at, c.id)
    for row in over.locked().all(ctx.tx):
        complete_rotation(ctx, row, project_scope(ctx.tx, row.project_id))
        who = {"actor_id": ctx.principal.id, "actor_kind": ctx.principal.kind, "permission": ctx.permission}
        what = {"outcome": "allowed", "reason": "the rotation overlap ended", "resource_id": row.id}
        ctx.note(Entry(**who, **what, tenant_id=row.tenant_id, project_id=row.project_id))


def held(ctx: Context, project_id: str, credential_id: str) -> CredentialRow:
    """Lock the credential for a change or a delivery, and return it.
    If its overlap period has ended, the rotation is completed first."""
    row = credential_row(ctx.tx, project_id, credential_id, lock=True)
    ctx.resource_id = credential_id
    if row.state == ROTATING and row.overlap_ends_at is not None and row.overlap_ends_at <= ctx.now:
        complete_rotation(ctx, row)
        row = credential_row(ctx.tx, project_id, credential_id)
    return row


def credentials_of(project_id: str, *, revoked: bool) -> Query[ShownCredential]:
    """Return the query for the project's credentials, each with its newest version.
    `revoked`: include revoked credentials."""
    query = _WITH_NEWEST.where(credentials.c.project_id == project_id)
    return query if revoked else query.where(credentials.c.state.in_(CREDENTIAL.live_states))


def shown_credential(tx: Connection, project_id: str, credential_id: str) -> ShownCredential:
    row = credentials_of(project_id, revoked=True).where(credentials.c.id == credential_id).first(tx)
    if row is None:
        raise NotFound("There is no such credential in this project.")
    return row


def credential_row(tx: Connection, project_id: str, credential_id: str, *, lock: bool = False) -> CredentialRow:
    row = (_LOCKED if lock else _CREDENTIAL).first(tx, project=project_id, credential=credential_id)
    if row is None:
        raise NotFound("The project has no such credential.")
    return row


def versions_of(tx: Connection, credential_id: str) -> list[VersionRow]:
    return _VERSIONS.all(tx, credential=credential_id)


def opened(tx: Connection, vault: Vault, version: VersionRow) -> str:
    """Unseal and return the private key of a version that is not retired."""
    place = _bound_to(version.tenant_id, version.project_id, version.credential_id, version.version)
    return vault.unseal(tx, version.tenant_id, version.sealed_private_key or b"", place).decode()


def facts(tx: Connection, credential_id: str) -> dict[str, JsonValue]:
    """Return the data fields that every credential event has."""
    row = _BY_ID.one(tx, credential=credential_id)
    newest = versions_of(tx, credential_id)[-1]
    return {
        "name": row.name,
        "state": row.state,
        "origin": newest.origin,
        "fingerprint": newest.fingerprint,
        "credential_version": newest.version,
    }


def _bound_to(tenant_id: str, project_id: str, credential_id: str, version: int) -> str:
    return canonical(["credential", tenant_id, project_id, credential_id, version])


def _add_version(ctx: Context, vault: Vault, row: CredentialRow, version: int, key: SshKey) -> None:
    where = _bound_to(row.tenant_id, row.project_id, row.id, version)
    ctx.tx.execute(
        insert(credential_versions).values(
            credential_id=row.id,
            version=version,
            tenant_id=row.tenant_id,
            project_id=row.project_id,
            origin=key.origin,
            algorithm=key.algorithm,
            public_key=key.public_key,
            fingerprint=key.fingerprint,
            sealed_private_key=vault.seal(ctx.tx, row.tenant_id, key.private_key, where),
            created_by=ctx.principal.id,
            created_at=ctx.now,
        )
    )


def _retire(ctx: Context, credential_id: str, *which: ColumnElement[bool]) -> None:
    v = credential_versions.c
    these = (v.credential_id == credential_id, v.retired_at.is_(None), *which)
    change = {"retired_at": ctx.now, "sealed_private_key": None}
    ctx.tx.execute(update(credential_versions).where(*these).values(**change))


def _set(ctx: Context, credential_id: str, **change: str | int | None) -> None:
    ctx.tx.execute(update(credentials).where(credentials.c.id == credential_id).values(**change))


def _emit(ctx: Context, credential_id: str, what: str, *, scope: Scope | None = None, **more: JsonValue) -> None:
    ctx.emit(f"custody.credential.{what}", credential_id, facts(ctx.tx, credential_id) | more, scope=scope)
