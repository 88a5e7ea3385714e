"""Whether policy lets a project deploy a version here, and in which modes. Plan and deploy use the same check."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from ..policy.modes import Modes, decide_modes
from ..policy.reads import overlays_for, require
from .reads import check_not_expired


def admit(ctx: Context, version: Row[Any], machines: Iterable[Row[Any]]) -> None:
    """Raise if a policy of any level refuses. `machines`: rows with `node_name`, `region` and `sku`."""
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


def modes_for(ctx: Context, version: Row[Any], asked: Mapping[str, str | None]) -> Modes:
    """The effective modes of a new instance, or `refused`, which the caller turns into its own error."""
    return decide_modes(overlays_for(ctx.tx, ctx.scope, version.app_slug), version.manifest, asked)
