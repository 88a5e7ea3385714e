"""Access credentials and the instances that use them: administrators bind a credential to an instance, and the holder
of a claim receives its private key once."""

from collections.abc import Mapping

from sqlalchemy import Connection

from ..authz.context import Context
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.clock import rfc3339
from ..kit.json_types import JsonValue
from ..kit.lifecycle import WrongMoment
from ..kit.problems import NotFound, Problem
from ..operations.targets import Subject, subject_names
from . import deliveries, key_pairs, schemas, ssh_keys
from .owners import claimed, owner
from .rows import CredentialRow, ShownCredential, UseRow, VersionRow
from .sealing import LIVES_S, sealed_to_caller
from .states import BIND, CREDENTIAL, REDEEM

declare(
    {
        "custody.credential.bound": "A credential was bound to an instance; the instance's controller can use it.",
        "custody.credential.unbound": (
            "A credential was unbound from an instance; the instance's controller can no longer use it."
        ),
        "custody.credential.delivered": (
            "A credential was delivered to the controller of a claimed operation, encrypted to the controller's public "
            "key."
        ),
        "custody.credential.redelivery_refused": (
            "A second delivery of a credential to the same claim was refused. Check which program requested the second "
            "delivery."
        ),
    }
)


class CredentialRevoked(Problem):
    status, code, title = 410, "credential_revoked", "The credential was revoked"
    way_out = "Ask an administrator of the project to bind the instance to another credential."


class CredentialVersionRetired(Problem):
    status, code, title = 410, "credential_version_retired", "This version of the credential is retired"
    way_out = "Omit `version` to get the newest version."


def create(ctx: Context, vault: Vault, project_id: str, body: schemas.CreateCredential) -> schemas.CredentialDetail:
    row = key_pairs.create(ctx, vault, project_id, body.name, ssh_keys.generated())
    return detail(ctx.tx, project_id, row.id)


def bring(ctx: Context, vault: Vault, project_id: str, body: schemas.ImportCredential) -> schemas.CredentialDetail:
    row = key_pairs.create(ctx, vault, project_id, body.name, ssh_keys.imported(body.private_key))
    return detail(ctx.tx, project_id, row.id)


def rotate(
    ctx: Context, vault: Vault, project_id: str, credential_id: str, body: schemas.RotateCredential
) -> schemas.CredentialDetail:
    row = key_pairs.held(ctx, project_id, credential_id)
    key = ssh_keys.generated() if body.private_key is None else ssh_keys.imported(body.private_key)
    key_pairs.rotate(ctx, vault, row, key, body.overlap_s)
    return detail(ctx.tx, project_id, credential_id)


def complete_rotation(ctx: Context, project_id: str, credential_id: str) -> schemas.CredentialDetail:
    key_pairs.complete_rotation(ctx, key_pairs.held(ctx, project_id, credential_id))
    return detail(ctx.tx, project_id, credential_id)


def revoke(
    ctx: Context, project_id: str, credential_id: str, body: schemas.RevokeCredential
) -> schemas.CredentialDetail:
    key_pairs.revoke(ctx, key_pairs.held(ctx, project_id, credential_id), body.reason)
    return detail(ctx.tx, project_id, credential_id)


def bind(ctx: Context, project_id: str, credential_id: str, body: schemas.NameInstance) -> schemas.CredentialDetail:
    instance = owner(ctx, project_id, body.instance_id)
    row = key_pairs.held(ctx, project_id, credential_id)
    CREDENTIAL.after(row.state, BIND)
    if instance.ended:
        raise WrongMoment("The instance is deleted: it uses nothing any more.")
    if deliveries.bind(ctx, credential_id, instance.id):
        _emit(ctx, "bound", credential_id, instance)
    return detail(ctx.tx, project_id, credential_id)


def unbind(ctx: Context, project_id: str, credential_id: str, body: schemas.NameInstance) -> schemas.CredentialDetail:
    """Unbind the credential from an instance, or raise NotFound if it is not bound. This is possible in every state,
    even after the credential was revoked."""
    instance = owner(ctx, project_id, body.instance_id)
    key_pairs.held(ctx, project_id, credential_id)
    if not deliveries.unbind(ctx.tx, credential_id, instance.id):
        raise NotFound("The instance is not bound to this credential.")
    _emit(ctx, "unbound", credential_id, instance)
    return detail(ctx.tx, project_id, credential_id)


def redeem(
    ctx: Context, vault: Vault, project_id: str, operation_id: str, body: schemas.RedeemCredential
) -> schemas.SealedCredentialView:
    operation, instance = claimed(ctx, project_id, operation_id, body.claim_epoch)
    row, version = _wanted(ctx, project_id, instance, body)
    deliveries.deliver_once(ctx, version, instance.id, operation.id, operation.claim_epoch)
    claim: dict[str, JsonValue] = {"operation_id": operation.id, "claim_epoch": operation.claim_epoch}
    sealed = sealed_to_caller(
        ctx,
        vault,
        claim
        | {
            "instance_id": instance.id,
            "credential_id": row.id,
            "name": row.name,
            "version": version.version,
            "value": key_pairs.opened(ctx.tx, vault, version),
        },
    )
    _emit(ctx, "delivered", row.id, instance, _named(version) | claim)
    return schemas.SealedCredentialView(
        credential_id=row.id,
        name=row.name,
        version=version.version,
        public_key=version.public_key,
        sealed=sealed,
        expires_in_s=LIVES_S,
    )


def note_redelivery(ctx: Context, project_id: str, operation_id: str, body: schemas.RedeemCredential) -> None:
    """Emit an event and add an audit row for a refused second delivery. This needs a transaction of its own, because
    the transaction of the refused request is rolled back."""
    operation, instance = claimed(ctx, project_id, operation_id, body.claim_epoch)
    row, version = _wanted(ctx, project_id, instance, body)
    claim: dict[str, JsonValue] = {"operation_id": operation.id, "claim_epoch": operation.claim_epoch}
    _emit(ctx, "redelivery_refused", row.id, instance, _named(version) | claim)
    ctx.note(ctx.entry("denied", "this claim has been given this credential"))


def detail(tx: Connection, project_id: str, credential_id: str) -> schemas.CredentialDetail:
    row = key_pairs.shown_credential(tx, project_id, credential_id)
    more = {"versions": key_pairs.versions_of(tx, credential_id), "used_by": used_by(tx, row)}
    return schemas.CredentialDetail.model_validate(view(row).model_dump() | more)


def view(row: ShownCredential) -> schemas.CredentialView:
    possible = sorted(action for action in CREDENTIAL.moves[row.state] if action != REDEEM)
    return schemas.CredentialView.model_validate(vars(row) | {"available_actions": possible})


def used_by(tx: Connection, credential: CredentialRow) -> list[schemas.CredentialUse]:
    """Return the instances that may request the credential or have received it,
    with the versions and times of the deliveries."""
    bound, uses = deliveries.bindings_of(tx, credential.id), deliveries.uses_of(tx, credential.id)
    given: dict[str, list[UseRow]] = {instance_id: [] for instance_id in bound}
    for one in uses:
        given.setdefault(one.instance_id, []).append(one)
    return [
        schemas.CredentialUse(
            instance_id=instance_id,
            instance_name=name,
            bound=instance_id in bound,
            last_used_at=rfc3339(given[instance_id][0].last_used_at) if given[instance_id] else None,
            behind=bool(given[instance_id]) and given[instance_id][0].version < credential.version,
            versions=[schemas.UsedVersion.model_validate(used) for used in given[instance_id]],
        )
        for instance_id, name in subject_names(tx, list(given)).items()
    ]


def _wanted(
    ctx: Context, project_id: str, instance: Subject, body: schemas.RedeemCredential
) -> tuple[CredentialRow, VersionRow]:
    """Return the credential and the requested version, or raise an error if the instance may not receive it now."""
    credential_id = deliveries.bound_credential(ctx.tx, instance.id, body.name)
    if credential_id is None:
        bound = "Ask an administrator of the project to bind the credential (`gpuaas credential bind`)."
        raise NotFound(f"The instance is bound to no credential {body.name!r}.", way_out=bound)
    row = key_pairs.held(ctx, project_id, credential_id)
    if CREDENTIAL.terminal(row.state):
        raise CredentialRevoked(f"The credential {row.name!r} was revoked: {row.revoke_reason}")
    CREDENTIAL.after(row.state, REDEEM)
    found = {one.version: one for one in key_pairs.versions_of(ctx.tx, row.id)}
    version = found.get(body.version or row.version)
    if version is None:
        raise NotFound(f"The credential {row.name!r} has no version {body.version}.")
    if version.retired_at is not None:
        raise CredentialVersionRetired(f"{row.name!r} is at version {row.version}; {version.version} is retired.")
    return row, version


def _named(version: VersionRow) -> dict[str, JsonValue]:
    return {"credential_version": version.version, "fingerprint": version.fingerprint, "origin": version.origin}


def _emit(
    ctx: Context, what: str, credential_id: str, instance: Subject, more: Mapping[str, JsonValue] | None = None
) -> None:
    facts = {**instance.facts, **key_pairs.facts(ctx.tx, credential_id), **(more or {})}
    ctx.emit(f"custody.credential.{what}", credential_id, facts)
