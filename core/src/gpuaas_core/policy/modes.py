"""Decides the effective modes of an instance, as a pure function of overlays, the app's manifest and the requested
modes.

Requested modes are hints. A requested mode is used if the app supports it and every overlay allows it; otherwise the
first such mode in the order below is used. `instances` shows the requested and the effective modes, with the reasons
from here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from .evaluate import NEEDS_ENABLING, Overlay, Ruling, judge, judge_mode

# The defaults for a manifest that declares none.
DEFAULTS: dict[str, tuple[str, ...]] = {
    "operating_modes": ("tenant_dedicated",),
    "control_plane_scopes": ("project",),
    "tenant_boundary_modes": ("tenant_isolated",),
}

# Per operating mode, in order of preference: control plane scopes and tenant boundary modes.
FITTING: dict[str, dict[str, tuple[str, ...]]] = {
    "tenant_dedicated": {
        "control_plane_scopes": ("project", "tenant"),
        "tenant_boundary_modes": ("tenant_isolated",),
    },
    "platform_managed": {
        "control_plane_scopes": ("platform",),
        "tenant_boundary_modes": ("shared_service", "tenant_isolated"),
    },
}

# Every value of a closed field, so that all can be listed with their rulings.
VOCABULARY: dict[str, tuple[str, ...]] = {"operating_modes": tuple(FITTING)} | {
    field: tuple(dict.fromkeys(value for fitting in FITTING.values() for value in fitting[field]))
    for field in ("control_plane_scopes", "tenant_boundary_modes")
}


class DeclaredModes(TypedDict):
    """The part of an app's manifest that declares modes; `catalog.manifest_types` has the whole manifest."""

    app_slug: str
    runtime_backend: str
    operating_modes: NotRequired[list[str]]
    control_plane_scopes: NotRequired[list[str]]
    tenant_boundary_modes: NotRequired[list[str]]


@dataclass(frozen=True)
class Modes:
    """The four effective modes with their reasons. If `refused` is set, it is the reason why the instance must not use
    them."""

    operating_mode: str
    control_plane_scope: str
    runtime_backend: str
    tenant_boundary_mode: str
    reasons: dict[str, str]
    refused: str | None = None
    matched: tuple[str, ...] = ()

    def columns(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.reasons}


@dataclass(frozen=True)
class _Chosen:
    value: str
    ruling: Ruling


def declares(manifest: DeclaredModes, field: str) -> tuple[str, ...]:
    declared = {
        "operating_modes": manifest.get("operating_modes"),
        "control_plane_scopes": manifest.get("control_plane_scopes"),
        "tenant_boundary_modes": manifest.get("tenant_boundary_modes"),
    }
    return tuple(declared[field] or DEFAULTS[field])


def decide_modes(overlays: Sequence[Overlay], manifest: DeclaredModes, asked: Mapping[str, str | None]) -> Modes:
    """Decide the four modes of an instance. `asked` has the requested modes by name. A requested control plane scope
    `platform` implies the operating mode `platform_managed`."""
    wanted = asked.get("operating_mode")
    if wanted is None and asked.get("control_plane_scope") == "platform":
        wanted = NEEDS_ENABLING
    mode = _mode(overlays, manifest, wanted)
    backend = manifest["runtime_backend"]
    chosen = {
        "operating_mode": mode,
        "control_plane_scope": _fitting(
            overlays, manifest, "control_plane_scopes", mode.value, asked.get("control_plane_scope")
        ),
        "runtime_backend": _Chosen(backend, judge(overlays, "runtime_backends", backend)),
        "tenant_boundary_mode": _fitting(
            overlays, manifest, "tenant_boundary_modes", mode.value, asked.get("tenant_boundary_mode")
        ),
    }
    refused = next((choice.ruling for choice in chosen.values() if not choice.ruling.allowed), None)
    return Modes(
        **{name: choice.value for name, choice in chosen.items()},
        reasons={name: choice.ruling.reason for name, choice in chosen.items()},
        refused=f"{refused.reason[0].upper()}{refused.reason[1:]}." if refused else None,
        matched=refused.matched if refused else (),
    )


def _mode(overlays: Sequence[Overlay], manifest: DeclaredModes, wanted: str | None) -> _Chosen:
    """Return the requested operating mode if it is allowed, otherwise the first allowed mode. For a requested
    `platform_managed` there is no fallback: the result may be a refusal."""
    app, supported = manifest["app_slug"], declares(manifest, "operating_modes")
    order = [mode for mode in FITTING if mode in supported]
    rulings = [_Chosen(mode, judge_mode(overlays, app, mode)) for mode in order]
    if wanted == NEEDS_ENABLING:
        enabled = _Chosen(wanted, judge_mode(overlays, app, wanted))
        if enabled.ruling.allowed and wanted not in supported:
            return _Chosen(wanted, Ruling(False, f"the app {app!r} does not support {wanted}"))
        return enabled
    possible = [choice for choice in rulings if choice.ruling.allowed]
    hinted = [choice for choice in possible if choice.value == wanted]
    return (hinted or possible or rulings)[0]


def _fitting(
    overlays: Sequence[Overlay], manifest: DeclaredModes, field: str, mode: str, wanted: str | None
) -> _Chosen:
    """Return a value of the field that fits the operating mode and that app and policy allow: the requested value if
    possible, otherwise the first. If no value is allowed, the result is a refusal."""
    order = FITTING[mode][field]
    supported = [value for value in order if value in declares(manifest, field)]
    if not supported:
        why = f"the app supports none of the {field} that {mode} can have: {', '.join(order)}"
        return _Chosen(order[0], Ruling(False, why))
    rulings = [_Chosen(value, judge(overlays, field, value)) for value in supported]
    possible = [choice for choice in rulings if choice.ruling.allowed]
    hinted = [choice for choice in possible if choice.value == wanted]
    return (hinted or possible or rulings)[0]
