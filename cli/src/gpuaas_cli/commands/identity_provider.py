"""`gpuaas identity-provider …`: the OpenID providers through which a tenant's users sign in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Destroying, Flag, Looking, Tenant
from ..session import pick, session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import ProviderView

    from ..session import Session

LISTING = "gpuaas identity-provider list"
app = App(name="identity-provider", help="Manage the OpenID providers through which users of the tenant sign in.")


@app.command(name="list")
def list_providers(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List the identity providers of the tenant.

    Example: gpuaas identity-provider list --tenant acme
    """
    with session(common) as at:
        found = _all(at, at.tenant_id(tenant))
    if common.json:
        return show.as_json(found)
    if not found:
        print("No identity providers; users sign in with a password.")
        return None
    rows = [(p.name, p.issuer, ", ".join(p.email_domains) or "any", p.default_role or "-", p.id) for p in found]
    return show.table(("NAME", "ISSUER", "DOMAINS", "DEFAULT ROLE", "ID"), rows)


@app.command(name="show")
def show_provider(name: str, /, *, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """Show an identity provider, with the redirect addresses to register with the provider.

    Example: gpuaas identity-provider show Acme

    Parameters
    ----------
    name
        Name or id of the identity provider.
    """
    with session(common) as at:
        tenant_id = at.tenant_id(tenant)
        known = name if name.startswith("idp_") else pick("identity provider", name, _all(at, tenant_id), LISTING).id
        found = at.client.get_identity_provider(tenant_id, known)
    if common.json:
        return show.as_json(found)
    facts = [("provider", found.name), ("issuer", found.issuer), ("client id", found.client_id)]
    facts += [("domains", ", ".join(found.email_domains) or "any"), ("default role", found.default_role or "-")]
    facts += [("redirect address", found.callback_url), ("sign-in address", found.start_url), ("id", found.id)]
    return show.facts(facts)


@app.command
def create(
    name: str,
    *,
    issuer: str,
    client_id: str,
    client_secret_stdin: Annotated[bool, Flag] = False,
    domain: list[str] | None = None,
    default_role: str | None = None,
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Add an identity provider through which the tenant's users can sign in.

    Example: gpuaas identity-provider create Acme --issuer https://accounts.acme.example --client-id gpuaas

    Parameters
    ----------
    name
        Display name of the identity provider.
    issuer
        The issuer URL, https://…
    client_id
        The client id registered with the provider.
    client_secret_stdin
        Read the client secret from standard input.
    domain
        Accept only e-mail addresses of this domain. May be repeated.
    default_role
        Role that a user gets at the first sign-in; requires --domain.
    """
    secret = sys.stdin.read().rstrip("\n") if client_secret_stdin else None
    with session(common) as at:
        facts = {"issuer": issuer, "client_id": client_id, "client_secret": secret}
        made = at.client.create_identity_provider(
            at.tenant_id(tenant), name=name, **facts, email_domains=domain, default_role=default_role
        )
    if common.json:
        return show.as_json(made)
    print(f"Added {made.name}. Register this redirect address with the provider: {made.callback_url}")
    print(f"Sign-in address: {made.start_url}")
    return None


@app.command
def update(
    name: str,
    *,
    new_name: str | None = None,
    client_secret_stdin: Annotated[bool, Flag] = False,
    domain: list[str] | None = None,
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Change an identity provider. Settings whose options you omit stay as they are.

    Example: gpuaas identity-provider update Acme --client-secret-stdin < new-secret

    Parameters
    ----------
    name
        Name or id of the identity provider.
    new_name
        The new name.
    client_secret_stdin
        Read a new client secret from standard input.
    domain
        Accept only e-mail addresses of this domain, instead of the former domains. May be repeated.
    """
    secret = sys.stdin.read().rstrip("\n") if client_secret_stdin else None
    with session(common) as at:
        where = at.tenant_id(tenant)
        one = _named(at, where, name)
        changed = at.client.update_identity_provider(
            where, one.id, name=new_name, client_secret=secret, email_domains=domain
        )
    if common.json:
        return show.as_json(changed)
    print(f"{changed.name} is changed.")
    return None


@app.command
def delete(name: str, *, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Delete an identity provider. Users can no longer sign in through the provider; accounts and sessions stay.

    Example: gpuaas identity-provider delete Acme

    Parameters
    ----------
    name
        Name or id of the identity provider.
    """
    with session(common) as at:
        where = at.tenant_id(tenant)
        gone = at.client.delete_identity_provider(where, _named(at, where, name).id)
    if common.json:
        return show.as_json(gone)
    print(f"Deleted {gone.name}.")
    return None


def _all(at: Session, tenant_id: str) -> list[ProviderView]:
    return list(at.client.every(sdk.Calls.list_identity_providers, tenant_id))


def _named(at: Session, tenant_id: str, name: str) -> ProviderView:
    return pick("identity provider", name, _all(at, tenant_id), "gpuaas identity-provider list")
