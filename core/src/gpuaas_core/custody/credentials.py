"""Access credentials of a project: key pairs whose private half only the controller it is delivered to can read.

A private key is sealed for its tenant, project, credential and version: in another row it cannot be unsealed. A
rotation adds a new version and keeps the old one for an overlap; retiring a version or revoking the credential deletes
the private key in the same transaction.
"""

from typing import Any

from sqlalchemy import Connection, Row, Select, and_, insert, select, update

from ..audit.audit_log import Entry
from ..authz.context import Context
from ..authz.evaluate import Scope
from ..events.event_log import declare
from ..kit.db import insert_new
from ..kit.ids import new_id
from ..kit.problems import NotFound, Problem
from ..kit.sealed_columns import declare_sealed
from ..kit.wire import canonical
from ..tenancy.reads import project_scope
from . import redemptions
from .ssh_keys import SshKey
from .states import ACTIVE, COMPLETE, CREDENTIAL, REVOKE, ROTATE, ROTATING
from .tables import credential_versions, credentials
from .vault import Vault

declare(
    {
        "custody.credential.created": "The platform generated a key pair for a project.",
        "custody.credential.imported": "A project imported a key pair.",
        "custody.credential.rotation_started": "A credential has a new version; the old one lasts until `expires_at`.",
        "custody.credential.rotation_completed": "Only the newest version of a credential is valid.",
        "custody.credential.revoked": "A credential was revoked and its private keys deleted.",
    }
)


class CredentialNameTaken(Problem):
    status, code, title = 409, "credential_name_taken", "Credential name already in use"
    way_out = "Choose another name, rotate the existing credential, or revoke it first."


class CredentialKeyNotNew(Problem):
    status, code, title = 409, "credential_key_not_new", "Credential key already used"
    way_out = "Rotate to a new key, or omit `private_key` to have the platform generate one."


declare_sealed(
    credential_versions,
    "sealed_private_key",
    tenant="tenant_id",
    bound_to=lambda row: bound_to(row),
)


def create(ctx: Context, vault: Vault, project_id: str, name: str, key: SshKey) -> Row[Any]:
    credential_id = ctx.resource_id = new_id("cred")
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


def rotate(ctx: Context, vault: Vault, row: Row[Any], key: SshKey, overlap_s: int) -> None:
    """The new version is delivered from now on; during the overlap the old one can be requested by number."""
    state = CREDENTIAL.after(row.state, ROTATE)
    if any(version.fingerprint == key.fingerprint for version in versions_of(ctx.tx, row.id)):
        raise CredentialKeyNotNew(f"{key.fingerprint} was already a key of {row.name!r}.")
    ends = ctx.now + overlap_s * 1000
    _add_version(ctx, vault, row, row.version + 1, key)
    _set(ctx, row.id, state=state, version=row.version + 1, overlap_ends_at=ends)
    _emit(ctx, row.id, "rotation_started", expires_at=ends)


def complete_rotation(ctx: Context, row: Row[Any], scope: Scope | None = None) -> None:
    state = CREDENTIAL.after(row.state, COMPLETE)
    _retire(ctx, row.id, credential_versions.c.version < row.version)
    _set(ctx, row.id, state=state, overlap_ends_at=None)
    _emit(ctx, row.id, "rotation_completed", scope=scope)


def revoke(ctx: Context, row: Row[Any], reason: str) -> None:
    """Permanent. Sealed answers kept for repeated requests are deleted with the keys."""
    state = CREDENTIAL.after(row.state, REVOKE)
    _retire(ctx, row.id)
    redemptions.forget_credential(ctx.tx, row.id)
    _set(ctx, row.id, state=state, overlap_ends_at=None, revoked_at=ctx.now, revoke_reason=reason)
    _emit(ctx, row.id, "revoked", reason=reason)


def end_overlaps(ctx: Context) -> None:
    """Called by housekeeping. The old version expired by its time; this emits the event."""
    for row in ctx.tx.execute(
        select(credentials).where(_overlap_over(ctx)).order_by(credentials.c.id).with_for_update()
    ).all():
        complete_rotation(ctx, row, project_scope(ctx.tx, row.project_id))
        who = {"actor_id": ctx.principal.id, "actor_kind": ctx.principal.kind, "permission": ctx.permission}
        what = {"outcome": "allowed", "reason": "the rotation overlap ended", "resource_id": row.id}
        ctx.note(Entry(**who, **what, tenant_id=row.tenant_id, project_id=row.project_id))


def held(ctx: Context, project_id: str, credential_id: str) -> Row[Any]:
    """Locked, to change it or to deliver it; an overlap that is over is ended first."""
    row = credential_row(ctx.tx, project_id, credential_id, lock=True)
    ctx.resource_id = credential_id
    if row.state == ROTATING and row.overlap_ends_at <= ctx.now:
        complete_rotation(ctx, row)
        row = credential_row(ctx.tx, project_id, credential_id)
    return row


def credentials_of(project_id: str, *, revoked: bool) -> Select[Any]:
    """Each credential with its newest version."""
    v = credential_versions.c
    newest = and_(v.credential_id == credentials.c.id, v.version == credentials.c.version)
    columns = (v.origin, v.algorithm, v.public_key, v.fingerprint)
    query = (
        select(credentials, *columns).join(credential_versions, newest).where(credentials.c.project_id == project_id)
    )
    return query if revoked else query.where(credentials.c.state.in_(CREDENTIAL.live_states))


def credential_row(tx: Connection, project_id: str, credential_id: str, *, lock: bool = False) -> Row[Any]:
    query = select(credentials).where(credentials.c.project_id == project_id, credentials.c.id == credential_id)
    row = tx.execute(query.with_for_update(key_share=True) if lock else query).first()
    if row is None:
        raise NotFound("The project has no such credential.")
    return row


def versions_of(tx: Connection, credential_id: str) -> list[Row[Any]]:
    v = credential_versions.c
    return list(tx.execute(select(credential_versions).where(v.credential_id == credential_id).order_by(v.version)))


def opened(tx: Connection, vault: Vault, version: Row[Any]) -> str:
    return vault.unseal(tx, version.tenant_id, version.sealed_private_key, bound_to(version)).decode()


def facts(tx: Connection, credential_id: str) -> dict[str, Any]:
    """The data of every credential event."""
    row = tx.execute(select(credentials).where(credentials.c.id == credential_id)).one()
    newest = versions_of(tx, credential_id)[-1]
    data = {"origin": newest.origin, "fingerprint": newest.fingerprint, "credential_version": newest.version}
    return {"name": row.name, "state": row.state} | data


def bound_to(version: Row[Any]) -> str:
    """What a row of `credential_versions` is sealed to."""
    return _bound_to(version.tenant_id, version.project_id, version.credential_id, version.version)


def _bound_to(tenant_id: str, project_id: str, credential_id: str, version: int) -> str:
    return canonical(["credential", tenant_id, project_id, credential_id, version])


def _add_version(ctx: Context, vault: Vault, row: Row[Any], version: int, key: SshKey) -> None:
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


def _retire(ctx: Context, credential_id: str, *which: Any) -> None:
    v = credential_versions.c
    these = (v.credential_id == credential_id, v.retired_at.is_(None), *which)
    change = {"retired_at": ctx.now, "sealed_private_key": None}
    ctx.tx.execute(update(credential_versions).where(*these).values(**change))


def _set(ctx: Context, credential_id: str, **change: Any) -> None:
    ctx.tx.execute(update(credentials).where(credentials.c.id == credential_id).values(**change))


def _emit(ctx: Context, credential_id: str, what: str, *, scope: Scope | None = None, **more: Any) -> None:
    ctx.emit(f"custody.credential.{what}", credential_id, facts(ctx.tx, credential_id) | more, scope=scope)


def _overlap_over(ctx: Context) -> Any:
    return (credentials.c.state == ROTATING) & (credentials.c.overlap_ends_at <= ctx.now)
