"""`gpuaas service-account …`: the service accounts of a project, their keys, and key rotation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import gpuaas_sdk as sdk
import msgspec
from cyclopts import App, Parameter

from .. import failures, show
from ..failures import CliError
from ..options import Changing, Common, Destroying, Looking, Many
from ..session import Session, pick, session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import ServiceAccountView

app = App(name="service-account", help="Manage the service accounts of the project and their keys.")


def _account(at: Session, name: str) -> ServiceAccountView:
    known = list(at.client.every(sdk.Calls.list_service_accounts, at.project_id))
    return pick("service account", name, known, "gpuaas service-account list")


@app.command(name="list")
def list_accounts(*, common: Looking = Looking()) -> None:
    """List the service accounts of the project, their roles and their last sign-in.

    Example: gpuaas service-account list --project red
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_service_accounts, at.project_id))
    if common.json:
        return show.as_json(found)
    if not found:
        print("The project has no service accounts.")
        return None
    rows = [
        (a.name, "disabled" if a.disabled else "enabled", ", ".join(a.roles), str(a.active_keys), _used(a), a.id)
        for a in found
    ]
    return show.table(("NAME", "STATE", "ROLES", "KEYS", "LAST USED", "ID"), rows)


@app.command
def create(
    name: str,
    /,
    *,
    identity: Path,
    role: Annotated[list[str], Many] = ["app_operator"],  # noqa: B006 - cyclopts reads the default
    common: Changing = Changing(),
) -> None:
    """Create a service account. Its private key is generated locally and written only to the identity file.

    Example: gpuaas service-account create robot --identity robot.json --project red
    Example: gpuaas service-account create watcher --role project_viewer --identity watcher.json

    Parameters
    ----------
    name
        The account's name.
    identity
        The identity file to write, readable by its owner only.
    role
        Role of the account in the project. May be repeated.
    """
    with session(common) as at:
        fresh = sdk.ServiceAccount.generate(project_id=at.project_id, api=at.api)
        made = at.client.create_service_account(at.project_id, name=name, public_jwk=fresh.public_jwk, roles=role)
        try:
            key = at.client.list_keys(at.project_id, made.id).items[0].id
            msgspec.structs.replace(fresh, id=made.id, key_id=key).save(identity)
        except OSError as error:
            at.client.delete_service_account(at.project_id, made.id)
            way_out = "No account was created. Name a file that you can write."
            raise CliError(f"Cannot write {identity}: {error.strerror}.", way_out, failures.USAGE) from error
    if common.json:
        return show.as_json(made)
    print(
        f"Created {made.name} with {', '.join(made.roles)}. Identity file: {identity}."
        " Anyone with this file can act as this account."
    )
    return None


def _used(one: object) -> str:
    last = getattr(one, "last_used_at", None)
    return show.ago(last) if last else "never"


@app.command
def keys(name: str, *, common: Looking = Looking()) -> None:
    """List the keys of a service account and when each key was last used.

    Example: gpuaas service-account keys slurm-controller --project red

    Parameters
    ----------
    name
        Name or id of the service account.
    """
    with session(common) as at:
        found = at.client.list_keys(at.project_id, _account(at, name).id).items
    if common.json:
        return show.as_json(found)
    rows = [(k.id, "active" if k.active else "retired", show.ago(k.created_at), _used(k)) for k in found]
    return show.table(("KEY", "STATE", "CREATED", "LAST USED"), rows)


@app.command
def rotate(
    name: str, *, identity: Annotated[Path, Parameter(name="--identity")], common: Changing = Changing()
) -> None:
    """Create a new key and write it to the account's identity file. The old key stays valid until you retire it.

    Example: gpuaas service-account rotate slurm-controller --identity /etc/gpuaas/identity.json --project red

    Parameters
    ----------
    name
        Name or id of the service account.
    identity
        The identity file to write, readable by its owner only.
    """
    with session(common) as at:
        account = _account(at, name)
        fresh = sdk.ServiceAccount.generate(project_id=at.project_id, api=at.api)
        key = at.client.add_key(at.project_id, account.id, public_jwk=fresh.public_jwk)
        try:
            msgspec.structs.replace(fresh, id=account.id, key_id=key.id).save(identity)
        except OSError as error:
            at.client.retire_key(at.project_id, account.id, key.id)
            raise CliError(
                f"Cannot write {identity}: {error.strerror}.", "Name a file that you can write.", failures.USAGE
            ) from error
        others = [k.id for k in at.client.list_keys(at.project_id, account.id).items if k.active and k.id != key.id]
    if common.json:
        return show.as_json(key)
    print(f"{identity} contains the new key {key.id}. When the account uses it, retire the old key:\n")
    for old in others:
        print(f"  gpuaas service-account retire-key {name} {old}")
    return None


@app.command(name="retire-key")
def retire_key(name: str, key: str, *, common: Destroying = Destroying()) -> None:
    """Retire a key of a service account. The key and the tokens issued for it stop working at once.

    Example: gpuaas service-account retire-key slurm-controller key_01h… --project red

    Parameters
    ----------
    name
        Name or id of the service account.
    key
        Id of the key, see `gpuaas service-account keys`.
    """
    with session(common) as at:
        gone = at.client.retire_key(at.project_id, _account(at, name).id, key)
    if common.json:
        return show.as_json(gone)
    print(f"{gone.id} is retired.")
    return None


@app.command
def disable(name: str, *, common: Destroying = Destroying()) -> None:
    """Disable a service account. It can no longer sign in, and its tokens stop working at once.

    Example: gpuaas service-account disable slurm-controller --project red

    Parameters
    ----------
    name
        Name or id of the service account.
    """
    with session(common) as at:
        return _print(at.client.disable_service_account(at.project_id, _account(at, name).id), "is disabled", common)


@app.command
def enable(name: str, *, common: Changing = Changing()) -> None:
    """Re-enable a service account, so that it can sign in again.

    Example: gpuaas service-account enable slurm-controller --project red

    Parameters
    ----------
    name
        Name or id of the service account.
    """
    with session(common) as at:
        return _print(at.client.enable_service_account(at.project_id, _account(at, name).id), "is enabled", common)


@app.command
def delete(name: str, *, common: Destroying = Destroying()) -> None:
    """Delete a service account with its keys, tokens and roles. Its name stays in the audit trail.

    Example: gpuaas service-account delete old-controller --project red

    Parameters
    ----------
    name
        Name or id of the service account.
    """
    with session(common) as at:
        return _print(at.client.delete_service_account(at.project_id, _account(at, name).id), "is deleted", common)


def _print(account: ServiceAccountView, what: str, common: Common) -> None:
    if common.json:
        return show.as_json(account)
    print(f"{account.name} {what}.")
    return None
