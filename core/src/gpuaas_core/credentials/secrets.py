"""Runtime secrets of an instance: created by the instance's controller or an administrator,
delivered only to the controller."""

from ..authz.context import Context
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.lifecycle import WrongMoment
from ..kit.problems import NotFound
from ..operations.rows import OperationRow
from ..operations.targets import Subject
from . import secret_schemas as schemas
from . import secret_store
from .owners import claimed, owner
from .rows import SecretRow
from .sealing import LIVES_S

declare(
    {
        "apps.secret.issued": "A secret of an instance, or a new version of the secret, was created.",
        "apps.secret.delivered": (
            "A secret was delivered to the instance's controller, encrypted to the controller's public key."
        ),
        "apps.secret.redelivery_refused": (
            "A second delivery of a secret to the same claim was refused. Check which program requested the second "
            "delivery."
        ),
        "apps.secret.deleted": "A secret of an instance was deleted, with all its versions.",
    }
)


def issue(
    ctx: Context, vault: Vault, project_id: str, instance_id: str, body: schemas.IssueSecret
) -> schemas.SecretView:
    """Create a secret for an administrator. Its value is generated, or provided in the request."""
    return _issued(ctx, vault, owner(ctx, project_id, instance_id), body, body.value)


def issue_for_claim(
    ctx: Context, vault: Vault, project_id: str, operation_id: str, body: schemas.ClaimSecret
) -> schemas.SecretView:
    """Create a secret for the instance's controller. Its value is always generated, so that no plaintext is sent."""
    _, instance = claimed(ctx, project_id, operation_id, body.claim_epoch)
    return _issued(ctx, vault, instance, body, None)


def _issued(
    ctx: Context, vault: Vault, instance: Subject, body: schemas.GenerateSecret, value: str | None
) -> schemas.SecretView:
    if instance.ended:
        raise WrongMoment("The instance is deleted: it has no secrets any more.")
    origin = "generated" if value is None else "provided"
    row = secret_store.keep(
        ctx, vault, instance, body.name, value or secret_store.generated(body.length, body.alphabet), origin
    )
    ctx.resource_id = row.id
    facts = {"name": row.name, "secret_version": row.version, "origin": origin}
    ctx.emit("apps.secret.issued", row.id, {**instance.facts, **facts})
    return schemas.SecretView.model_validate(row)


def deliver(
    ctx: Context, vault: Vault, project_id: str, operation_id: str, body: schemas.AskSecret
) -> schemas.SealedSecretView:
    operation, instance = claimed(ctx, project_id, operation_id, body.claim_epoch)
    row = secret_store.wanted(ctx.tx, instance.id, body.name, body.version)
    sealed = secret_store.delivered(ctx, vault, row, operation_id=operation.id, epoch=operation.claim_epoch)
    _emit(ctx, "delivered", row, instance, operation)
    return schemas.SealedSecretView(name=row.name, version=row.version, sealed=sealed, expires_in_s=LIVES_S)


def note_redelivery(ctx: Context, project_id: str, operation_id: str, body: schemas.AskSecret) -> None:
    """Emit an event and add an audit row for a refused second delivery. This needs a transaction of its own, because
    the transaction of the refused request is rolled back."""
    operation, instance = claimed(ctx, project_id, operation_id, body.claim_epoch)
    row = secret_store.wanted(ctx.tx, instance.id, body.name, body.version)
    _emit(ctx, "redelivery_refused", row, instance, operation)
    ctx.note(ctx.entry("denied", "this claim has been given this secret"))


def _emit(ctx: Context, what: str, row: SecretRow, instance: Subject, operation: OperationRow) -> None:
    ctx.resource_id = row.id
    claim = {"operation_id": operation.id, "claim_epoch": operation.claim_epoch}
    facts = claim | {"name": row.name, "secret_version": row.version}
    ctx.emit(f"apps.secret.{what}", row.id, {**instance.facts, **facts})


def remove(ctx: Context, project_id: str, instance_id: str, name: str) -> schemas.SecretGoneView:
    instance = owner(ctx, project_id, instance_id)
    ctx.resource_id = instance_id
    versions = secret_store.forget(ctx.tx, instance_id, name)
    if not versions:
        raise NotFound("The instance has no such secret.")
    ctx.emit("apps.secret.deleted", instance_id, {**instance.facts, "name": name})
    return schemas.SecretGoneView(name=name, versions=versions)
