"""`gpuaas artifact …`: content for nodes; `gpuaas artifact-source …`: its sources."""

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

app = App(name="artifact", help="Manage artifacts: content for nodes, verified by its digest.")
source = App(name="artifact-source", help="Manage the sources from which artifacts are downloaded.")
Level = Literal["platform", "tenant"]


def _at(at: Session, level: Level, tenant: str | None) -> tuple[str, ...]:
    return () if level == "platform" else (at.tenant_id(tenant),)


def _call(at: Session, what: str, level: Level) -> Any:
    return getattr(at.client, what.format(level))


def _every(at: Session, what: str, level: Level, tenant: str | None, **more: Any) -> list[Any]:
    return list(at.client.every(getattr(sdk.Calls, what.format(level)), *_at(at, level, tenant), **more))


def _artifact_id(at: Session, level: Level, tenant: str | None, name: str) -> str:
    """Return the id of an artifact given by id or `name:version`."""
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
    """List the artifacts of the tenant and the platform, and whether the project may use each artifact.

    Example: gpuaas artifact list --project red
    Example: gpuaas artifact list --level tenant

    Parameters
    ----------
    name
        List only artifacts with this name.
    level
        List the artifacts of the tenant or the platform instead, withdrawn artifacts included.
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
    return show.table(("NAME", "VERSION", "LEVEL", "SOURCE", "BYTES", "USABLE", "ID"), rows)


def _of_level(common: Common, found: list[ArtifactView]) -> None:
    if common.json:
        return show.as_json(found)
    rows = [(a.name, a.version, a.tier, a.source, str(a.size), a.state, a.id) for a in found]
    return show.table(("NAME", "VERSION", "LEVEL", "SOURCE", "BYTES", "STATE", "ID"), rows)


@app.command(name="show")
def show_artifact(
    name: str, /, *, level: Level | None = None, tenant: Tenant = None, common: Looking = Looking()
) -> None:
    """Show an artifact in detail, and whether the project may use it.

    Example: gpuaas artifact show slurm-packages:22.05.8
    Example: gpuaas artifact show slurm-packages:22.05.8 --level platform

    Parameters
    ----------
    name
        NAME:VERSION or id of the artifact.
    level
        Show the artifact of the tenant or the platform, without the check for a project.
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
            matching = [one for one in every if one.version == version]
            if not matching:
                raise CliError(f"There is no artifact {name}.", "See: gpuaas artifact list", failures.NOT_FOUND)
            found = matching[0]
    return _about(common, found, [("usable", "yes" if found.allowed else found.reason)])


def _about(common: Common, found: ArtifactView | ProjectArtifactView, more: list[tuple[str, str]]) -> None:
    if common.json:
        return show.as_json(found)
    facts = [("artifact", f"{found.name} {found.version}"), ("level", found.tier), ("source", found.source)]
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
    """Upload a file to the platform's own store and register it as an artifact.

    Example: gpuaas artifact push slurm-22.05.8.tar --name slurm-packages --version 22.05.8

    Parameters
    ----------
    file
        The file to upload; nodes get exactly this content.
    name
        The artifact's name: lowercase letters, digits and hyphens.
    version
        The artifact's version. The content of a version can never be changed.
    media_type
        Media type of the content.
    level
        `tenant`, or `platform` for all tenants.
    """
    from gpuaas_sdk.client.artifacts import push_file, sha256_of

    if not file.is_file():
        raise CliError(f"{file} is not a file.", "Give the path of the file to push.", failures.USAGE)
    with session(common) as at:
        where = _at(at, level, tenant)
        push_file(at.client, file, *where)
        facts = {"name": name, "version": version, "sha256": sha256_of(file), "media_type": media_type}
        made = _call(at, "register_{}_artifact", level)(*where, **facts)
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
    """Register content of a source as an artifact. Without --sha256, the platform downloads the content now.

    Example: gpuaas artifact register --name weights --version 7 --from-source models --path llama/7.bin
    Example: gpuaas artifact register --name tools --version 2 --from-source hub --repository a/b --manifest sha256:…

    Parameters
    ----------
    name
        The artifact's name: lowercase letters, digits and hyphens.
    version
        The artifact's version. The content of a version can never be changed.
    from_source
        Name or id of the source.
    path
        For blob sources: the path below the source's address.
    repository
        For oci sources: the repository. Requires --manifest.
    manifest
        For oci sources: the digest of the manifest.
    layer
        For oci sources: the digest of the layer, if the manifest has several layers.
    sha256
        Expected SHA-256 digest. Default: computed by the platform.
    size
        Expected size in bytes. Default: counted by the platform.
    level
        `tenant`, or `platform` for all tenants.
    """
    with session(common) as at:
        facts = {"name": name, "version": version, "source_id": _source_id(at, level, tenant, from_source)}
        facts |= {"path": path, "repository": repository, "manifest": manifest, "layer": layer}
        call = _call(at, "register_{}_artifact", level)
        made = call(*_at(at, level, tenant), **facts, sha256=sha256, size=size)
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
    """Withdraw an artifact, so that it is no longer delivered. The same version cannot be registered again.

    Example: gpuaas artifact withdraw slurm-packages:22.05.8 --reason "a bug in munge"

    Parameters
    ----------
    name
        NAME:VERSION or id of the artifact.
    level
        `tenant`, or `platform` for an artifact or source of the platform itself.
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
    """List the sources of the tenant and the platform; with --level platform, list only the platform's sources.

    Example: gpuaas artifact-source list

    Parameters
    ----------
    level
        `tenant` or `platform`.
    """
    with session(common) as at:
        found = _every(at, "list_{}_artifact_sources", level, tenant)
    if common.json:
        return show.as_json(found)
    rows = [(s.policy_name, s.kind, s.tier, s.base_url or "-", s.credential_kind or "-", s.state, s.id) for s in found]
    return show.table(("IN POLICIES", "KIND", "LEVEL", "ADDRESS", "CREDENTIAL", "STATE", "ID"), rows)


@source.command(name="show")
def show_source(name: str, /, *, level: Level = "tenant", tenant: Tenant = None, common: Looking = Looking()) -> None:
    """Show a source: its address, credential, state and allowed actions.

    Example: gpuaas artifact-source show models

    Parameters
    ----------
    name
        Name or id of the source.
    level
        `tenant`, or `platform` for an artifact or source of the platform itself.
    """
    with session(common) as at:
        which = _source_id(at, level, tenant, name)
        found = _call(at, "get_{}_artifact_source", level)(*_at(at, level, tenant), which)
    if common.json:
        return show.as_json(found)
    facts = [("source", found.name), ("in policies", found.policy_name), ("kind", found.kind), ("level", found.tier)]
    facts += [("address", found.base_url), ("credential", found.credential_kind or "none"), ("state", found.state)]
    can = ", ".join(found.available_actions)
    return show.facts([*facts, ("reason", found.state_reason or ""), ("allowed actions", can), ("id", found.id)])


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
    """Add a source from which artifacts can be registered.

    Example: gpuaas artifact-source add models https://models.example/bucket --kind blob
    Example: gpuaas artifact-source add hub https://registry.example --kind oci --credential-stdin < login.json

    Parameters
    ----------
    name
        Name of the source.
    base_url
        Address of the source, https://…
    kind
        `blob` for files, `oci` for a registry.
    port
        Confirm a non-standard port in the address.
    credential_stdin
        Read a credential as JSON from standard input: {"kind": "basic", "username": …, "password": …},
        {"kind": "bearer", "token": …} or {"kind": "s3", "access_key_id": …, "secret_access_key": …, "region": …}.
    private_addresses
        Platform only: allow plain http and private network addresses.
    open_to_tenants
        Platform only: let tenants register any content of the source, read with the platform's credential.
    level
        `tenant`, or `platform` for all tenants.
    """
    facts: dict[str, Any] = {"name": name, "kind": kind, "base_url": base_url, "port": port}
    facts["credential"] = _credential() if credential_stdin else None
    if level == "platform":
        facts |= {"private_addresses": private_addresses or None, "open_to_tenants": open_to_tenants or None}
    elif private_addresses or open_to_tenants:
        way_out = "Add --level platform, or leave the option out."
        raise CliError(
            "--private-addresses and --open-to-tenants are for sources of the platform.", way_out, failures.USAGE
        )
    with session(common) as at:
        made = _call(at, "create_{}_artifact_source", level)(*_at(at, level, tenant), **facts)
    return _print(common, made, f"{made.name} is added. Policies refer to it as {made.policy_name}.")


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
    """Disable an artifact source, so that its artifacts are no longer delivered to nodes. Ends pending deliveries.

    Example: gpuaas artifact-source disable models --reason "incident 7"

    Parameters
    ----------
    name
        Name or id of the source.
    level
        `tenant`, or `platform` for an artifact or source of the platform itself.
    """
    return _decide(common, "disable", name, reason, level, tenant, "is disabled")


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
    """Re-enable an artifact source, so that its artifacts are delivered to nodes again.

    Example: gpuaas artifact-source enable models

    Parameters
    ----------
    name
        Name or id of the source.
    level
        `tenant`, or `platform` for an artifact or source of the platform itself.
    """
    return _decide(common, "enable", name, reason, level, tenant, "is enabled")


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
    """Delete a source and its credential. Refused while an artifact of the source is registered.

    Example: gpuaas artifact-source remove models

    Parameters
    ----------
    name
        Name or id of the source.
    level
        `tenant`, or `platform` for an artifact or source of the platform itself.
    """
    return _decide(common, "remove", name, reason, level, tenant, "is deleted")


@source.command(name="set-credential")
def set_credential(
    name: str, /, *, level: Level = "tenant", tenant: Tenant = None, common: Changing = Changing()
) -> None:
    """Replace the credential of a source. Reads the credential as JSON from standard input, as `add` does.

    Example: gpuaas artifact-source set-credential models < login.json

    Parameters
    ----------
    name
        Name or id of the source.
    level
        `tenant`, or `platform` for an artifact or source of the platform itself.
    """
    credential = _credential()
    with session(common) as at:
        call = _call(at, "set_{}_artifact_credential", level)
        made = call(*_at(at, level, tenant), _source_id(at, level, tenant, name), credential=credential)
    return _print(common, made, f"{made.name} has a new {made.credential_kind} credential.")


def _decide(
    common: Common, verb: str, name: str, reason: str | None, level: Level, tenant: str | None, now: str
) -> None:
    with session(common) as at:
        call = _call(at, f"{verb}_{{}}_artifact_source", level)
        made = call(*_at(at, level, tenant), _source_id(at, level, tenant, name), reason=reason)
    return _print(common, made, f"{made.name} {now}.")


def _print(common: Common, made: SourceView, sentence: str) -> None:
    if common.json:
        return show.as_json(made)
    print(sentence)
    return None


def _credential() -> dict[str, Any]:
    try:
        read = json.loads(sys.stdin.read())
        assert isinstance(read, dict)
        return read
    except (ValueError, AssertionError):
        example = '{"kind": "bearer", "token": …}'
        raise CliError(
            "The credential on standard input is not a JSON object.", f"For example: {example}", failures.USAGE
        ) from None
