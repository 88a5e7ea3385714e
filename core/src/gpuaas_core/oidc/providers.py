"""The OpenID providers that a tenant trusts to authenticate its users. The client secret is stored encrypted and never
shown."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from ..authz.context import Context
from ..events.event_log import declare
from ..iam import roles
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.rows import Query
from ..kit.vault import Vault, declare_sealed
from ..tenancy.reads import ids_of_tenants_named
from . import schemas
from .errors import DomainsNeeded
from .rows import ProviderRow
from .tables import identity_providers, sign_in_attempts

declare(
    {
        "tenancy.identity_provider.created": (
            "An identity provider was created; users of the tenant can sign in through it."
        ),
        "tenancy.identity_provider.updated": "An identity provider was changed.",
        "tenancy.identity_provider.deleted": (
            "An identity provider was deleted; users can no longer sign in through it."
        ),
    }
)


_i = identity_providers.c
PROVIDER_ID = _i.id
PROVIDERS = Query(select(identity_providers), ProviderRow)
_BY_ID = PROVIDERS.where(_i.id == bindparam("provider"))
_OF_TENANT_NAMED = PROVIDERS.where(_i.tenant_id.in_(ids_of_tenants_named(bindparam("slug")))).order_by(_i.name, _i.id)

declare_sealed(identity_providers, "sealed_secret", tenant="tenant_id", bound_to=lambda row: _bound(row.id))


def create_provider(ctx: Context, vault: Vault, tenant_id: str, body: schemas.CreateProvider) -> ProviderRow:
    provider_id = ctx.resource_id = new_id("idp")
    facts = body.model_dump(exclude={"client_secret"})
    _check_default_role(ctx, facts["default_role"], facts["email_domains"])
    ctx.tx.execute(
        insert(identity_providers).values(
            id=provider_id,
            tenant_id=tenant_id,
            **facts,
            sealed_secret=_seal(ctx, vault, provider_id, body.client_secret),
            created_by=ctx.principal.id,
            created_at=ctx.now,
        )
    )
    ctx.emit("tenancy.identity_provider.created", provider_id, {"issuer": body.issuer})
    return provider(ctx.tx, provider_id, tenant_id)


def update_provider(
    ctx: Context, vault: Vault, tenant_id: str, provider_id: str, body: schemas.UpdateProvider
) -> ProviderRow:
    row = provider(ctx.tx, provider_id, tenant_id)
    ctx.resource_id = provider_id
    changes = body.model_dump(exclude_none=True, exclude={"client_secret", "default_role"})
    if "default_role" in body.model_fields_set:
        changes["default_role"] = body.default_role
    after = vars(row) | changes
    _check_default_role(ctx, after["default_role"], after["email_domains"])
    if "client_secret" in body.model_fields_set:
        changes["sealed_secret"] = _seal(ctx, vault, provider_id, body.client_secret)
    changes["created_by"] = ctx.principal.id  # the default role is granted in the name of its last editor
    ctx.tx.execute(update(identity_providers).where(identity_providers.c.id == provider_id).values(**changes))
    ctx.emit("tenancy.identity_provider.updated", provider_id, {"changed": sorted(body.model_fields_set)})
    return provider(ctx.tx, provider_id, tenant_id)


def delete_provider(ctx: Context, tenant_id: str, provider_id: str) -> ProviderRow:
    row = provider(ctx.tx, provider_id, tenant_id)
    ctx.resource_id = provider_id
    ctx.tx.execute(delete(sign_in_attempts).where(sign_in_attempts.c.provider_id == provider_id))
    ctx.tx.execute(delete(identity_providers).where(identity_providers.c.id == provider_id))
    ctx.emit("tenancy.identity_provider.deleted", provider_id, {"issuer": row.issuer})
    return row


def providers_of(tenant_id: str) -> Query[ProviderRow]:
    return PROVIDERS.where(_i.tenant_id == tenant_id)


def provider(tx: Connection, provider_id: str, tenant_id: str | None = None) -> ProviderRow:
    row = _BY_ID.first(tx, provider=provider_id)
    if row is None or (tenant_id is not None and row.tenant_id != tenant_id):
        raise NotFound("There is no such identity provider.")
    return row


def view(row: ProviderRow, public_url: str) -> schemas.ProviderView:
    more = {
        "confidential": row.sealed_secret is not None,
        "callback_url": callback_url(public_url),
        "start_url": start_url(row, public_url),
    }
    return schemas.ProviderView.model_validate(vars(row) | more)


def providers_of_tenant_named(tx: Connection, tenant_slug: str) -> list[ProviderRow]:
    return _OF_TENANT_NAMED.all(tx, slug=tenant_slug)


def sign_in_way(row: ProviderRow, public_url: str) -> schemas.SignInWayView:
    return schemas.SignInWayView(name=row.name, start_url=start_url(row, public_url))


def start_url(row: ProviderRow, public_url: str) -> str:
    return f"{public_url}/v1/auth/oidc/{row.id}/start"


def callback_url(public_url: str) -> str:
    return f"{public_url}/v1/auth/oidc/callback"


def secret_of(tx: Connection, vault: Vault, row: ProviderRow) -> str | None:
    if row.sealed_secret is None:
        return None
    return vault.unseal(tx, row.tenant_id, row.sealed_secret, _bound(row.id)).decode()


def _seal(ctx: Context, vault: Vault, provider_id: str, secret: str | None) -> bytes | None:
    if secret is None:
        return None
    return vault.seal(ctx.tx, str(ctx.scope.tenant_id), secret.encode(), _bound(provider_id))


def _bound(provider_id: str) -> str:
    return f"identity-provider/{provider_id}/client-secret"


def _check_default_role(ctx: Context, role: str | None, domains: Sequence[str]) -> None:
    if role is None:
        return
    if not domains:
        raise DomainsNeeded("Without e-mail domains every user of the provider would get this role.")
    ctx.allow("iam.binding.create")
    roles.check_bindable(ctx.tx, ctx.scope.tenant_id, role, "tenant")
    roles.check_holds_all(ctx.tx, ctx.principal, role, ctx.scope)
