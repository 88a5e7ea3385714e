"""`gpuaas artifact …`: what is registered for machines; `gpuaas artifact-source …`: where it may come from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import gpuaas_sdk as sdk
from cyclopts import App

from .. import failures, show
from ..failures import CliError
from ..options import Changing, Common, Destroying, Flag, Looking, Reason, Tenant
from ..session import Session, pick, session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import ArtifactView, ProjectArtifactView, SourceView

app = App(name="artifact", help="Content for machines: pushed or registered once, delivered with its digest.")
source = App(name="artifact-source", help="Where artifacts may come from.")
Level = Literal["platform", "tenant"]


def _at(at: Session, level: Level, tenant: str | None) -> tuple[str, ...]:
    return () if level == "platform" else (at.tenant_id(tenant),)


def _call(at: Session, what: str, level: Level) -> Any:
    return getattr(at.client, what.format(level))


def _every(at: Session, what: str, level: Level, tenant: str | None, **more: Any) -> list[Any]:
    return list(at.client.every(getattr(sdk.Calls, what.format(level)), *_at(at, level, tenant), **more))


def _artifact_id(at: Session, level: Level, tenant: str | None, name: str) -> str:
    """By id, or `name:version`."""
    if name.startswith("art_"):
        return name
    wanted, _, version = name.partition(":")
    found = [one for one in _every(at, "list_{}_artifacts", level, tenant, name=wanted) if one.version == version]
    if not found:
        raise CliError(f"There is no artifact {name}.", "See: gpuaas artifact list", failures.NOT_FOUND)
    return found[0].id


def _source_id(at: Session, level: Level, tenant: str | None, name: str) -> str:
    if name.startswith("asrc_"):
        return name
    known = [one for one in _every(at, "list_{}_artifact_sources", level, tenant) if one.tier == level]
    return pick("artifact source", name, known, "gpuaas artifact-source list").id


@app.command(name="list")
def list_artifacts(
    *, name: str | None = None, level: Level | None = None, tenant: Tenant = None, common: Looking = Looking()
) -> None:
    """What a project may use of what its tenant and the platform registered, and why not.

    Example: gpuaas artifact list --project red
    Example: gpuaas artifact list --level tenant

    Parameters
    ----------
    name
        Only those with this name.
    level
        Instead: what the tenant, or the platform, registered, withdrawn ones too.
    """
    with session(common) as at:
        if level:
            return _of_level(common, _every(at, "list_{}_artifacts", level, tenant, name=name))
        found = list(at.client.every(sdk.Calls.list_project_artifacts, at.project_id, name=name))
    if common.json:
        return show.as_json(found)
    if not found:
        print("No artifacts are registered.")
        return None
    rows = [(a.name, a.version, a.tier, a.source, str(a.size), "yes" if a.allowed else a.reason, a.id) for a in found]
    return show.table(("NAME", "VERSION", "OF", "SOURCE", "BYTES", "USABLE", "ID"), rows)


def _of_level(common: Common, found: list[ArtifactView]) -> None:
    if common.json:
        return show.as_json(found)
    rows = [(a.name, a.version, a.tier, a.source, str(a.size), a.state, a.id) for a in found]
    return show.table(("NAME", "VERSION", "OF", "SOURCE", "BYTES", "STATE", "ID"), rows)


@app.command(name="show")
def show_artifact(
    name: str, /, *, level: Level | None = None, tenant: Tenant = None, common: Looking = Looking()
) -> None:
    """All about one, and whether the project may use it.

    Example: gpuaas artifact show slurm-packages:22.05.8
    Example: gpuaas artifact show slurm-packages:22.05.8 --level platform

    Parameters
    ----------
    name
        Name and version with a colon between, or the id.
    level
        Instead of asking for a project: one of the tenant's, or the platform's own.
    """
    with session(common) as at:
        if level:
            which = _artifact_id(at, level, tenant, name)
            return _about(common, _call(at, "get_{}_artifact", level)(*_at(at, level, tenant), which), [])
        if name.startswith("art_"):
            found = at.client.get_project_artifact(at.project_id, name)
        else:
            wanted, _, version = name.partition(":")
            every = at.client.every(sdk.Calls.list_project_artifacts, at.project_id, name=wanted)
            there = [one for one in every if one.version == version]
            if not there:
                raise CliError(f"There is no artifact {name}.", "See: gpuaas artifact list", failures.NOT_FOUND)
            found = there[0]
    return _about(common, found, [("usable", "yes" if found.allowed else found.reason)])


def _about(common: Common, found: ArtifactView | ProjectArtifactView, more: list[tuple[str, str]]) -> None:
    if common.json:
        return show.as_json(found)
    facts = [("artifact", f"{found.name} {found.version}"), ("of", found.tier), ("source", found.source)]
    facts += [("reference", json.dumps(found.reference)), ("sha256", found.sha256), ("bytes", str(found.size))]
    return show.facts([*facts, ("type", found.media_type), ("state", found.state), *more, ("id", found.id)])


@app.command
def push(
    file: Path,
    /,
    *,
    name: str,
    version: str,
    media_type: str | None = None,
    level: Level = "tenant",
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Put a file into the core's own store and register it.

    Example: gpuaas artifact push slurm-22.05.8.tar --name slurm-packages --version 22.05.8

    Parameters
    ----------
    file
        What machines are to get, exactly so.
    name
        What it is called: small letters, digits and dashes.
    version
        Never given to other content again.
    media_type
        What kind of content it is.
    level
        platform: for all tenants.
    """
    from gpuaas_sdk.client.artifacts import push_file, sha256_of

    if not file.is_file():
        raise CliError(f"{file} is no file.", "Name the file to push.", failures.USAGE)
    with session(common) as at:
        where = _at(at, level, tenant)
        push_file(at.client, file, *where)
        said = {"name": name, "version": version, "sha256": sha256_of(file), "media_type": media_type}
        made = _call(at, "register_{}_artifact", level)(*where, **said)
    return _registered(common, made)


@app.command
def register(
    *,
    name: str,
    version: str,
    from_source: str,
    path: str | None = None,
    repository: str | None = None,
    manifest: str | None = None,
    layer: str | None = None,
    sha256: str | None = None,
    size: int | None = None,
    level: Level = "tenant",
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Register what a source has. Without a digest the platform reads it now.

    Example: gpuaas artifact register --name weights --version 7 --from-source models --path llama/7.bin
    Example: gpuaas artifact register --name tools --version 2 --from-source hub --repository a/b --manifest sha256:…

    Parameters
    ----------
    name
        What it is called: small letters, digits and dashes.
    version
        Its version; it never gets other content.
    from_source
        Name or id of the source.
    path
        For blob sources: below the source's address.
    repository
        For oci sources, with --manifest, and --layer if there are several.
    manifest
        Digest of the manifest, in a registry.
    layer
        Digest of the layer, if there are several.
    sha256
        Digest that the content must have; computed if left out.
    size
        Bytes it must have; counted if left out.
    level
        platform: for all tenants.
    """
    with session(common) as at:
        said = {"name": name, "version": version, "source_id": _source_id(at, level, tenant, from_source)}
        said |= {"path": path, "repository": repository, "manifest": manifest, "layer": layer}
        call = _call(at, "register_{}_artifact", level)
        made = call(*_at(at, level, tenant), **said, sha256=sha256, size=size)
    return _registered(common, made)


def _registered(common: Common, made: ArtifactView) -> None:
    if common.json:
        return show.as_json(made)
    print(f"{made.name} {made.version} is registered: {made.size} bytes, sha256 {made.sha256}.\n{made.id}")
    return None


@app.command
def withdraw(
    name: str,
    /,
    *,
    reason: Reason = None,
    level: Level = "tenant",
    tenant: Tenant = None,
    common: Destroying = Destroying(),
) -> None:
    """Deliver it to nobody any more. Its version is never used again.

    Example: gpuaas artifact withdraw slurm-packages:22.05.8 --reason "a bug in munge"

    Parameters
    ----------
    name
        Name and version with a colon between, or the id.
    level
        platform: one of the platform's own.
    """
    with session(common) as at:
        where = _at(at, level, tenant)
        gone = _call(at, "withdraw_{}_artifact", level)(*where, _artifact_id(at, level, tenant, name), reason=reason)
    if common.json:
        return show.as_json(gone)
    print(f"{gone.name} {gone.version} is withdrawn.")
    return None


@source.command(name="list")
def list_sources(*, level: Level = "tenant", tenant: Tenant = None, common: Looking = Looking()) -> None:
    """The tenant's own sources and the platform's; with --level platform those of the platform.

    Example: gpuaas artifact-source list

    Parameters
    ----------
    level
        Whose: `tenant` or `platform`.
    """
    with session(common) as at:
        found = _every(at, "list_{}_artifact_sources", level, tenant)
    if common.json:
        return show.as_json(found)
    rows = [(s.policy_name, s.kind, s.tier, s.base_url or "-", s.credential_kind or "-", s.state, s.id) for s in found]
    return show.table(("IN POLICIES", "KIND", "OF", "ADDRESS", "CREDENTIAL", "STATE", "ID"), rows)


@source.command(name="show")
def show_source(name: str, /, *, level: Level = "tenant", tenant: Tenant = None, common: Looking = Looking()) -> None:
    """One source: where it is, how it is entered, what may be done with it.

    Example: gpuaas artifact-source show models

    Parameters
    ----------
    name
        Name or id.
    level
        platform: one of the platform's own.
    """
    with session(common) as at:
        which = _source_id(at, level, tenant, name)
        found = _call(at, "get_{}_artifact_source", level)(*_at(at, level, tenant), which)
    if common.json:
        return show.as_json(found)
    facts = [("source", found.name), ("in policies", found.policy_name), ("kind", found.kind), ("of", found.tier)]
    facts += [("address", found.base_url), ("credential", found.credential_kind or "none"), ("state", found.state)]
    can = ", ".join(found.available_actions)
    return show.facts([*facts, ("why", found.state_reason or ""), ("can be", can), ("id", found.id)])


@source.command
def add(
    name: str,
    base_url: str,
    /,
    *,
    kind: Literal["oci", "blob"],
    port: int | None = None,
    credential_stdin: Annotated[bool, Flag] = False,
    private_addresses: Annotated[bool, Flag] = False,
    open_to_tenants: Annotated[bool, Flag] = False,
    level: Level = "tenant",
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Allow a further place that artifacts may come from.

    Example: gpuaas artifact-source add models https://models.example/bucket --kind blob
    Example: gpuaas artifact-source add hub https://registry.example --kind oci --credential-stdin < login.json

    Parameters
    ----------
    name
        Name of the source.
    base_url
        Its address: https://…
    kind
        `blob` for files, `oci` for a registry.
    port
        Once more, if the address names an unusual one.
    credential_stdin
        Read a credential as JSON from standard input: {"kind": "basic", "username": …, "password": …},
        {"kind": "bearer", "token": …} or {"kind": "s3", "access_key_id": …, "secret_access_key": …, "region": …}.
    private_addresses
        At the platform: it may be plain http and stand in the operator's own networks.
    open_to_tenants
        At the platform: tenants may register anything of it, read with the platform's credential.
    level
        platform: for all tenants.
    """
    said: dict[str, Any] = {"name": name, "kind": kind, "base_url": base_url, "port": port}
    said["credential"] = _credential() if credential_stdin else None
    if level == "platform":
        said |= {"private_addresses": private_addresses or None, "open_to_tenants": open_to_tenants or None}
    elif private_addresses or open_to_tenants:
        way_out = "Add --level platform, or leave the option out."
        raise CliError("Only the platform decides that about its own sources.", way_out, failures.USAGE)
    with session(common) as at:
        made = _call(at, "create_{}_artifact_source", level)(*_at(at, level, tenant), **said)
    return _told(common, made, f"{made.name} is a source; policies call it {made.policy_name}.")


@source.command
def disable(
    name: str,
    /,
    *,
    reason: Reason = None,
    level: Level = "tenant",
    tenant: Tenant = None,
    common: Destroying = Destroying(),
) -> None:
    """Nothing is delivered from it any more, also not what was promised.

    Example: gpuaas artifact-source disable models --reason "incident 7"

    Parameters
    ----------
    name
        Name or id.
    level
        platform: one of the platform's own.
    """
    return _decide(common, "disable", name, reason, level, tenant, "delivers nothing any more")


@source.command
def enable(
    name: str,
    /,
    *,
    reason: Reason = None,
    level: Level = "tenant",
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """It may deliver again.

    Example: gpuaas artifact-source enable models

    Parameters
    ----------
    name
        Name or id.
    level
        platform: one of the platform's own.
    """
    return _decide(common, "enable", name, reason, level, tenant, "delivers again")


@source.command
def remove(
    name: str,
    /,
    *,
    reason: Reason = None,
    level: Level = "tenant",
    tenant: Tenant = None,
    common: Destroying = Destroying(),
) -> None:
    """For good, with its credential; only once nothing registered comes from it.

    Example: gpuaas artifact-source remove models

    Parameters
    ----------
    name
        Name or id.
    level
        platform: one of the platform's own.
    """
    return _decide(common, "remove", name, reason, level, tenant, "is gone")


@source.command(name="set-credential")
def set_credential(
    name: str, /, *, level: Level = "tenant", tenant: Tenant = None, common: Changing = Changing()
) -> None:
    """Replace the credential of a source; read as JSON from standard input, as with `add`.

    Example: gpuaas artifact-source set-credential models < login.json

    Parameters
    ----------
    name
        Name or id.
    level
        platform: one of the platform's own.
    """
    credential = _credential()
    with session(common) as at:
        call = _call(at, "set_{}_artifact_credential", level)
        made = call(*_at(at, level, tenant), _source_id(at, level, tenant, name), credential=credential)
    return _told(common, made, f"{made.name} has a new credential of the kind {made.credential_kind}.")


def _decide(
    common: Common, verb: str, name: str, reason: str | None, level: Level, tenant: str | None, now: str
) -> None:
    with session(common) as at:
        call = _call(at, f"{verb}_{{}}_artifact_source", level)
        made = call(*_at(at, level, tenant), _source_id(at, level, tenant, name), reason=reason)
    return _told(common, made, f"{made.name} {now}.")


def _told(common: Common, made: SourceView, sentence: str) -> None:
    if common.json:
        return show.as_json(made)
    print(sentence)
    return None


def _credential() -> dict[str, Any]:
    try:
        said = json.loads(sys.stdin.read())
        assert isinstance(said, dict)
        return said
    except (ValueError, AssertionError):
        example = '{"kind": "bearer", "token": …}'
        raise CliError(
            "The credential on standard input is not a JSON object.", f"For example: {example}", failures.USAGE
        ) from None
