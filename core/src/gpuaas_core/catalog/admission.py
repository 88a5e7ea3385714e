"""Checks whether the policies let a project deploy a version, and in which modes. Plan and deploy make the same
check."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ..authz.context import Context
from ..policy.evaluate import Overlay
from ..policy.modes import Modes, decide_modes
from ..policy.reads import overlays_for, require
from .reads import check_not_expired
from .rows import AppVersionRow


class Machine(Protocol):
    """The properties of an allocation's node that policies refer to."""

    @property
    def node_name(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def sku(self) -> str: ...


def admit(ctx: Context, version: AppVersionRow, machines: Iterable[Machine]) -> list[Overlay]:
    """Return the policies of all levels. Raise an error if the project's entitlement has expired, or if a policy
    refuses the version or one of the machines."""
    check_not_expired(ctx.tx, str(ctx.scope.project_id), version.app_slug, ctx.now)
    overlays = overlays_for(ctx.tx, ctx.scope, version.app_slug)
    require(overlays, "apps", version.app_slug)
    require(overlays, "runtime_backends", version.manifest["runtime_backend"])
    for source in version.manifest.get("artifact_sources", ()):
        require(overlays, "artifact_sources", source)
    for machine in machines:
        cannot = f"{version.app_slug} cannot be placed on {machine.node_name!r}"
        require(overlays, "regions", machine.region, of=cannot)
        require(overlays, "skus", machine.sku, of=cannot)
    return overlays


def modes_for(overlays: Sequence[Overlay], version: AppVersionRow, asked: Mapping[str, str | None]) -> Modes:
    """Return the effective modes of a new instance under these policies. If a policy refuses the requested modes, no
    error is raised: `refused` of the result has the reason."""
    return decide_modes(overlays, version.manifest, asked)
