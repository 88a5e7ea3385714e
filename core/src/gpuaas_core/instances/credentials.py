"""Access credentials and the instances that use them: administrators bind, the controller of a claim redeems once."""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..authz.context import Context
from ..custody import credentials, redemptions, ssh_keys
from ..custody.delivery import LIVES_S, sealed_to_caller
from ..custody.states import BIND, CREDENTIAL, REDEEM
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.lifecycle import WrongMoment
from ..kit.problems import NotFound, Problem
from . import credential_schemas as schemas
from .claimed import held as held_operation
from .reads import instance_row
from .tables import instances
from .transitions import instance_facts

declare(
    {
        "custody.credential.bound": "An instance's controller may use a credential.",
        "custody.credential.unbound": "An instance's controller may not use a credential any more.",
        "custody.credential.delivered": "A credential was sealed to the controller of a claimed operation.",
        "custody.credential.redelivery_refused": "Somebody asked again for what its claim has been given: look who.",
    }
)


class CredentialRevoked(Problem):
    status, code, title = 410, "credential_revoked", "The credential was revoked"
    way_out = "Ask an administrator of the project to bind the instance to another credential."


class CredentialVersionRetired(Problem):
    status, code, title = 410, "credential_version_retired", "This version of the credential is not given out any more"
    way_out = "Leave `version` out to get the newest one."


def create(ctx: Context, vault: Vault, project_id: str, body: schemas.CreateCredential) -> schemas.CredentialDetail:
    row = credentials.create(ctx, vault, project_id, body.name, ssh_keys.generated())
    return detail(ctx.tx, project_id, row.id)


def bring(ctx: Context, vault: Vault, project_id: str, body: schemas.ImportCredential) -> schemas.CredentialDetail:
    row = credentials.create(ctx, vault, project_id, body.name, ssh_keys.imported(body.private_key))
    return detail(ctx.tx, project_id, row.id)


def rotate(
    ctx: Context, vault: Vault, project_id: str, credential_id: str, body: schemas.RotateCredential
) -> schemas.CredentialDetail:
    row = credentials.held(ctx, project_id, credential_id)
    key = ssh_keys.generated() if body.private_key is None else ssh_keys.imported(body.private_key)
    credentials.rotate(ctx, vault, row, key, body.overlap_s)
    return detail(ctx.tx, project_id, credential_id)


def complete_rotation(ctx: Context, project_id: str, credential_id: str) -> schemas.CredentialDetail:
    credentials.complete_rotation(ctx, credentials.held(ctx, project_id, credential_id))
    return detail(ctx.tx, project_id, credential_id)


def revoke(
    ctx: Context, project_id: str, credential_id: str, body: schemas.RevokeCredential
) -> schemas.CredentialDetail:
    credentials.revoke(ctx, credentials.held(ctx, project_id, credential_id), body.reason)
    return detail(ctx.tx, project_id, credential_id)


def bind(ctx: Context, project_id: str, credential_id: str, body: schemas.NameInstance) -> schemas.CredentialDetail:
    instance = instance_row(ctx.tx, project_id, body.instance_id, lock=True)
    row = credentials.held(ctx, project_id, credential_id)
    CREDENTIAL.after(row.state, BIND)
    if instance.state == "deleted":
        raise WrongMoment("The instance is deleted: it uses nothing any more.")
    if redemptions.bind(ctx, credential_id, instance.id):
        _tell(ctx, "bound", credential_id, instance)
    return detail(ctx.tx, project_id, credential_id)


def unbind(ctx: Context, project_id: str, credential_id: str, body: schemas.NameInstance) -> schemas.CredentialDetail:
    """Possible in every state: what is revoked can still be tidied up."""
    instance = instance_row(ctx.tx, project_id, body.instance_id, lock=True)
    credentials.held(ctx, project_id, credential_id)
    if not redemptions.unbind(ctx.tx, credential_id, instance.id):
        raise NotFound("The instance is not bound to this credential.")
    _tell(ctx, "unbound", credential_id, instance)
    return detail(ctx.tx, project_id, credential_id)


def redeem(
    ctx: Context, vault: Vault, project_id: str, operation_id: str, body: schemas.RedeemCredential
) -> schemas.SealedCredentialView:
    operation, instance = held_operation(ctx, project_id, operation_id, body.claim_epoch)
    row, version = _wanted(ctx, project_id, instance, body)
    redemptions.deliver_once(ctx, version, instance.id, operation.id, operation.claim_epoch)
    said = {"operation_id": operation.id, "claim_epoch": operation.claim_epoch}
    sealed = sealed_to_caller(
        ctx,
        vault,
        said
        | {
            "instance_id": instance.id,
            "credential_id": row.id,
            "name": row.name,
            "version": version.version,
            "value": credentials.opened(ctx.tx, vault, version),
        },
    )
    _tell(ctx, "delivered", row.id, instance, _named(version) | said)
    return schemas.SealedCredentialView(
        credential_id=row.id,
        name=row.name,
        version=version.version,
        public_key=version.public_key,
        sealed=sealed,
        expires_in_s=LIVES_S,
    )


def note_redelivery(ctx: Context, project_id: str, operation_id: str, body: schemas.RedeemCredential) -> None:
    """After the refusal, in a transaction of its own: whoever watches the project is told."""
    operation, instance = held_operation(ctx, project_id, operation_id, body.claim_epoch)
    row, version = _wanted(ctx, project_id, instance, body)
    said = {"operation_id": operation.id, "claim_epoch": operation.claim_epoch}
    _tell(ctx, "redelivery_refused", row.id, instance, _named(version) | said)
    ctx.note(ctx.entry("denied", "this claim has been given this credential"))


def detail(tx: Connection, project_id: str, credential_id: str) -> schemas.CredentialDetail:
    query = credentials.credentials_of(project_id, revoked=True)
    row = tx.execute(query.where(query.selected_columns.id == credential_id)).first()
    if row is None:
        raise NotFound("There is no such credential in this project.")
    more = {"versions": credentials.versions_of(tx, credential_id), "used_by": used_by(tx, row)}
    return schemas.CredentialDetail.model_validate(view(row).model_dump() | more)


def view(row: Row[Any]) -> schemas.CredentialView:
    possible = sorted(action for action in CREDENTIAL.moves[row.state] if action != REDEEM)
    return schemas.CredentialView.model_validate(dict(row._mapping) | {"available_actions": possible})


def used_by(tx: Connection, credential: Row[Any]) -> list[schemas.CredentialUse]:
    """Who may ask for it, and who was given which version when: also those that were unbound since."""
    bound, uses = redemptions.bindings_of(tx, credential.id), redemptions.uses_of(tx, credential.id)
    given: dict[str, list[Row[Any]]] = {instance_id: [] for instance_id in bound}
    for one in uses:
        given.setdefault(one.instance_id, []).append(one)
    i = instances.c
    named = tx.execute(select(i.id, i.name).where(i.id.in_(given)).order_by(i.name, i.id)).all()
    return [
        schemas.CredentialUse(
            instance_id=one.id,
            instance_name=one.name,
            bound=one.id in bound,
            last_used_at=given[one.id][0].last_used_at if given[one.id] else None,
            behind=bool(given[one.id]) and given[one.id][0].version < credential.version,
            versions=[schemas.UsedVersion.model_validate(used) for used in given[one.id]],
        )
        for one in named
    ]


def _wanted(
    ctx: Context, project_id: str, instance: Row[Any], body: schemas.RedeemCredential
) -> tuple[Row[Any], Row[Any]]:
    """The credential and its version, if the instance may have it now."""
    credential_id = redemptions.bound_credential(ctx.tx, instance.id, body.name)
    if credential_id is None:
        bound = "An administrator of the project binds one with `gpuaas credential bind`."
        raise NotFound(f"The instance is bound to no credential {body.name!r}.", way_out=bound)
    row = credentials.held(ctx, project_id, credential_id)
    if CREDENTIAL.terminal(row.state):
        raise CredentialRevoked(f"The credential {row.name!r} was revoked: {row.revoke_reason}")
    CREDENTIAL.after(row.state, REDEEM)
    found = {one.version: one for one in credentials.versions_of(ctx.tx, row.id)}
    version = found.get(body.version or row.version)
    if version is None:
        raise NotFound(f"The credential {row.name!r} has no version {body.version}.")
    if version.retired_at is not None:
        raise CredentialVersionRetired(f"{row.name!r} is at version {row.version}; {version.version} is retired.")
    return row, version


def _named(version: Row[Any]) -> dict[str, Any]:
    return {"credential_version": version.version, "fingerprint": version.fingerprint, "origin": version.origin}


def _tell(ctx: Context, what: str, credential_id: str, instance: Row[Any], more: dict[str, Any] | None = None) -> None:
    facts = instance_facts(instance) | credentials.facts(ctx.tx, credential_id) | (more or {})
    ctx.emit(f"custody.credential.{what}", credential_id, facts)
