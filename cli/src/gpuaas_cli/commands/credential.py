"""`gpuaas credential …`: key pairs of a project. Private keys can be imported, never exported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import gpuaas_sdk as sdk
from cyclopts import App, Parameter

from .. import failures, show
from ..failures import CliError
from ..options import Changing, Common, Destroying, Flag, Instance, Looking
from ..session import Session, pick, session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import CredentialDetail

app = App(name="credential", help="Manage the key pairs of a project. Only controllers get the private keys.")
STDIN = Path("-")


def _id(at: Session, name: str) -> str:
    if name.startswith("cred_"):
        return name
    known = list(at.client.every(sdk.Calls.list_credentials, at.project_id))
    return pick("credential", name, known, "gpuaas credential list").id


def _private_key(file: Path) -> str:
    """Read a private key. A file that others can read is rejected, as ssh does."""
    if file == STDIN:
        return sys.stdin.read()
    try:
        if file.stat().st_mode & 0o077:
            way_out = f"Run chmod 600 {file}. If another account may have read the key, create a new one."
            raise CliError(f"Other accounts can read {file}.", way_out, failures.USAGE)
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"Cannot read {file}: {error}", "Give the path of the private key.", failures.USAGE) from None


@app.command(name="list")
def list_credentials(*, revoked: Annotated[bool, Flag] = False, common: Looking = Looking()) -> None:
    """List the credentials of the project.

    Example: gpuaas credential list --project red

    Parameters
    ----------
    revoked
        Include revoked credentials.
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_credentials, at.project_id, revoked=revoked or None))
    if common.json:
        return show.as_json(found)
    if not found:
        print("No credentials.")
        return None
    rows = [(c.name, c.state, str(c.version), c.algorithm, c.origin, c.fingerprint, c.id) for c in found]
    return show.table(("NAME", "STATE", "VERSION", "KIND", "ORIGIN", "FINGERPRINT", "ID"), rows)


@app.command(name="show")
def show_credential(name: str, /, *, common: Looking = Looking()) -> None:
    """Show the public key and the versions of a credential, and which instance uses which version.

    Example: gpuaas credential show storage

    Parameters
    ----------
    name
        Name or id of the credential.
    """
    with session(common) as at:
        found = at.client.get_credential(at.project_id, _id(at, name))
    if common.json:
        return show.as_json(found)
    print(f"{found.name} is {found.state}, version {found.version}.\n{found.public_key}\n")
    versions = [(str(v.version), v.origin, show.ago(v.created_at), _when(v.retired_at, "-")) for v in found.versions]
    show.table(("VERSION", "ORIGIN", "CREATED", "RETIRED"), versions)
    return _uses(found)


def _when(moment: str | None, otherwise: str) -> str:
    return show.ago(moment) if moment else otherwise


def _uses(found: CredentialDetail) -> None:
    if not found.used_by:
        print("\nNo instance uses it.")
        return
    rows = [
        (
            use.instance_name,
            "yes" if use.bound else "no",
            ", ".join(str(one.version) for one in use.versions) or "-",
            _when(use.last_used_at, "never"),
            "has an old version" if use.behind else "",
        )
        for use in found.used_by
    ]
    print()
    show.table(("INSTANCE", "BOUND", "VERSIONS", "LAST USED", ""), rows)


def _done(common: Common, found: CredentialDetail, sentence: str) -> None:
    if common.json:
        show.as_json(found)
    else:
        print(sentence)


@app.command
def create(name: str, /, *, common: Changing = Changing()) -> None:
    """Create a credential: generate a key pair on the platform and print the public key.

    Example: gpuaas credential create storage

    Parameters
    ----------
    name
        The credential's name: lowercase letters, digits and hyphens.
    """
    with session(common) as at:
        made = at.client.create_credential(at.project_id, name=name)
    return _done(common, made, f"Created {made.name} ({made.fingerprint}). Public key:\n{made.public_key}")


@app.command(name="import")
def import_key(name: str, file: Path = STDIN, /, *, common: Changing = Changing()) -> None:
    """Import a private key in OpenSSH format without a passphrase. Refuses a file that other users can read.

    Example: gpuaas credential import storage ~/.ssh/storage
    Example: gpuaas credential import storage < key

    Parameters
    ----------
    name
        The credential's name: lowercase letters, digits and hyphens.
    file
        Path of the private key. Default: standard input.
    """
    private_key = _private_key(file)
    with session(common) as at:
        made = at.client.import_credential(at.project_id, name=name, private_key=private_key)
    return _done(common, made, f"Imported {made.name} ({made.fingerprint}). It cannot be exported.")


@app.command
def rotate(
    name: str,
    /,
    *,
    file: Annotated[Path | None, Parameter(show_default=False)] = None,
    overlap_s: int = 86_400,
    common: Changing = Changing(),
) -> None:
    """Add a new version of a credential. The old version stays valid for the overlap period.

    Example: gpuaas credential rotate storage --overlap-s 3600

    Parameters
    ----------
    name
        Name or id of the credential.
    file
        Path of the new private key; - for standard input. Default: the platform generates a key pair.
    overlap_s
        Overlap period: seconds for which the old version stays valid.
    """
    private_key = _private_key(file) if file else None
    with session(common) as at:
        wanted = {"private_key": private_key, "overlap_s": overlap_s}
        made = at.client.rotate_credential(at.project_id, _id(at, name), **wanted)
    behind = ", ".join(use.instance_name for use in made.used_by if use.behind) or "none"
    sentence = f"{made.name} is at version {made.version}. Instances on the old version: {behind}. New public key:"
    return _done(common, made, f"{sentence}\n{made.public_key}")


@app.command(name="complete-rotation")
def complete_rotation(name: str, /, *, common: Changing = Changing()) -> None:
    """Retire the old version of a credential before the overlap period ends.

    Example: gpuaas credential complete-rotation storage

    Parameters
    ----------
    name
        Name or id of the credential.
    """
    with session(common) as at:
        done = at.client.complete_credential_rotation(at.project_id, _id(at, name))
    return _done(common, done, f"Only version {done.version} of {done.name} is valid now.")


@app.command
def revoke(name: str, /, *, reason: str, common: Destroying = Destroying()) -> None:
    """Revoke a credential permanently and delete its private keys.

    Example: gpuaas credential revoke storage --reason "a laptop was stolen"

    Parameters
    ----------
    name
        Name or id of the credential.
    reason
        Recorded, and shown to controllers that request the credential later.
    """
    with session(common) as at:
        gone = at.client.revoke_credential(at.project_id, _id(at, name), reason=reason)
    sentence = f"{gone.name} is revoked. Remove its public key from the hosts that trust it."
    return _done(common, gone, sentence)


@app.command
def bind(name: str, instance: Instance, /, *, common: Changing = Changing()) -> None:
    """Let the controller of an instance use a credential.

    Example: gpuaas credential bind storage train

    Parameters
    ----------
    name
        Name or id of the credential.
    """
    with session(common) as at:
        where = at.instance(instance)
        done = at.client.bind_credential(at.project_id, _id(at, name), instance_id=where.id)
    return _done(common, done, f"The controller of {where.name} may use {done.name}.")


@app.command
def unbind(name: str, instance: Instance, /, *, common: Destroying = Destroying()) -> None:
    """Unbind a credential from an instance. Its controller may have a copy of the key: rotate the credential if needed.

    Example: gpuaas credential unbind storage train

    Parameters
    ----------
    name
        Name or id of the credential.
    """
    with session(common) as at:
        where = at.instance(instance)
        done = at.client.unbind_credential(at.project_id, _id(at, name), instance_id=where.id)
    return _done(common, done, f"The controller of {where.name} can no longer get {done.name}.")
