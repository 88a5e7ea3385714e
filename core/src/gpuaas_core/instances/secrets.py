"""Runtime secrets of an instance: issued by its controller or an administrator, read only by its controller."""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from ..custody import secrets
from ..custody.delivery import LIVES_S
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.lifecycle import WrongMoment
from ..kit.problems import NotFound
from . import schemas
from .claimed import held
from .reads import instance_row
from .transitions import instance_facts
from .work import Work

declare(
    {
        "apps.secret.issued": "An instance has a new secret, or a new version of one.",
        "apps.secret.delivered": "A secret was sealed to the instance's controller.",
        "apps.secret.redelivery_refused": "Somebody asked again for what its claim has been given: look who.",
        "apps.secret.deleted": "A secret of an instance is gone, in all versions.",
    }
)


def issue(
    ctx: Context, vault: Vault, project_id: str, instance_id: str, body: schemas.IssueSecret
) -> schemas.SecretView:
    """By an administrator: generated, or provided."""
    return _issued(ctx, vault, instance_row(ctx.tx, project_id, instance_id, lock=True), body, body.value)


def issue_for_claim(
    ctx: Context, vault: Vault, project_id: str, operation_id: str, body: schemas.ClaimSecret
) -> schemas.SecretView:
    """By the controller, for the instance it works on: always generated, so no plaintext travels at all."""
    _, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    return _issued(ctx, vault, instance, body, None)


def _issued(
    ctx: Context, vault: Vault, instance: Row[Any], body: schemas.GenerateSecret, value: str | None
) -> schemas.SecretView:
    if instance.state == "deleted":
        raise WrongMoment("The instance is deleted: it has no secrets any more.")
    origin = "generated" if value is None else "provided"
    row = secrets.keep(ctx, vault, instance, body.name, value or secrets.generated(body.length, body.alphabet), origin)
    ctx.resource_id = row.id
    facts = {"name": row.name, "secret_version": row.version, "origin": origin}
    ctx.emit("apps.secret.issued", row.id, instance_facts(instance) | facts)
    return schemas.SecretView.model_validate(row)


def deliver(
    ctx: Context, vault: Vault, project_id: str, operation_id: str, body: schemas.AskSecret
) -> schemas.SealedSecretView:
    operation, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    row = secrets.wanted(ctx.tx, instance.id, body.name, body.version)
    claim = {"operation_id": operation.id, "epoch": operation.claim_epoch}
    sealed = secrets.delivered(ctx, vault, instance, row, **claim)
    _tell(ctx, "delivered", row, instance, operation)
    return schemas.SealedSecretView(name=row.name, version=row.version, sealed=sealed, expires_in_s=LIVES_S)


def note_redelivery(ctx: Context, project_id: str, operation_id: str, body: schemas.AskSecret) -> None:
    """After the refusal, in a transaction of its own: whoever watches the project is told."""
    operation, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    _tell(ctx, "redelivery_refused", secrets.wanted(ctx.tx, instance.id, body.name, body.version), instance, operation)
    ctx.note(ctx.entry("denied", "this claim has been given this secret"))


def _tell(ctx: Context, what: str, row: Row[Any], instance: Row[Any], operation: Work) -> None:
    ctx.resource_id = row.id
    claim = {"operation_id": operation.id, "claim_epoch": operation.claim_epoch}
    facts = claim | {"name": row.name, "secret_version": row.version}
    ctx.emit(f"apps.secret.{what}", row.id, instance_facts(instance) | facts)


def remove(ctx: Context, project_id: str, instance_id: str, name: str) -> schemas.SecretGoneView:
    instance = instance_row(ctx.tx, project_id, instance_id, lock=True)
    ctx.resource_id = instance_id
    versions = secrets.forget(ctx.tx, instance_id, name)
    if not versions:
        raise NotFound("The instance has no such secret.")
    ctx.emit("apps.secret.deleted", instance_id, instance_facts(instance) | {"name": name})
    return schemas.SecretGoneView(name=name, versions=versions)
