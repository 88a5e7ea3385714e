"""In which modes an instance effectively runs: a pure function of overlays, the app's manifest, and the caller's hint.

A request may only hint at an operating mode. What the app supports and every overlay allows is left; of that the first
in the order below is taken. `instances` shows what was asked for and what it became, with these reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .evaluate import NEEDS_ENABLING, Overlay, Ruling, judge, judge_mode

# What an app supports if its manifest does not say.
DEFAULTS: dict[str, tuple[str, ...]] = {
    "operating_modes": ("tenant_dedicated",),
    "control_plane_scopes": ("project",),
    "tenant_boundary_modes": ("tenant_isolated",),
}

# Per operating mode, in order of preference: whom its control plane may serve, and on what it may run.
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


@dataclass(frozen=True)
class Modes:
    """The effective four, each with its reason; or `refused`, a sentence, and then they are not to be used."""

    operating_mode: str
    control_plane_scope: str
    runtime_backend: str
    tenant_boundary_mode: str
    reasons: dict[str, str]
    refused: str | None = None
    matched: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Chosen:
    value: str
    ruling: Ruling


def declares(manifest: dict[str, Any], field: str) -> tuple[str, ...]:
    return tuple(manifest.get(field) or DEFAULTS[field])


def decide_modes(overlays: Sequence[Overlay], manifest: dict[str, Any], requested: str | None) -> Modes:
    mode = _mode(overlays, manifest, requested)
    fitting = FITTING[mode.value]
    chosen = {
        "operating_mode": mode,
        "control_plane_scope": _first(overlays, manifest, "control_plane_scopes", fitting),
        "runtime_backend": _Chosen(manifest["runtime_backend"], _backend(overlays, manifest)),
        "tenant_boundary_mode": _first(overlays, manifest, "tenant_boundary_modes", fitting),
    }
    refused = next((one.ruling for one in chosen.values() if not one.ruling.allowed), None)
    return Modes(
        **{name: one.value for name, one in chosen.items()},
        reasons={name: one.ruling.reason for name, one in chosen.items()},
        refused=refused.reason if refused else None,
        matched=refused.matched if refused else (),
    )


def _mode(overlays: Sequence[Overlay], manifest: dict[str, Any], requested: str | None) -> _Chosen:
    """The hint, if it may be. Otherwise it gives way, but nobody who asks to be managed is left to themselves."""
    app, supported = manifest["app_slug"], declares(manifest, "operating_modes")
    order = [mode for mode in FITTING if mode in supported]
    if requested is not None and requested not in supported:
        hint = _Chosen(_known(requested), Ruling(False, f"the app {app!r} does not support {requested!r}"))
    else:
        first = requested or order[0]
        hint = _Chosen(first, judge_mode(overlays, app, first))
    if hint.ruling.allowed or requested == NEEDS_ENABLING:
        return hint
    for mode in order:
        ruling = judge_mode(overlays, app, mode)
        if ruling.allowed:
            instead = f"{ruling.reason}; {hint.value} was not possible: {hint.ruling.reason}"
            return _Chosen(mode, Ruling(True, instead, ruling.level, ruling.matched))
    return hint


def _known(mode: str) -> str:
    return mode if mode in FITTING else next(iter(FITTING))


def _first(
    overlays: Sequence[Overlay], manifest: dict[str, Any], field: str, fitting: dict[str, tuple[str, ...]]
) -> _Chosen:
    """The first that fits the mode, the app supports and policy allows; otherwise why the first is refused."""
    supported = [value for value in fitting[field] if value in declares(manifest, field)]
    if not supported:
        needed = ", ".join(fitting[field])
        return _Chosen(
            fitting[field][0], Ruling(False, f"the app supports none of the {field} this mode has: {needed}")
        )
    rulings = [_Chosen(value, judge(overlays, field, value)) for value in supported]
    return next((one for one in rulings if one.ruling.allowed), rulings[0])


def _backend(overlays: Sequence[Overlay], manifest: dict[str, Any]) -> Ruling:
    return judge(overlays, "runtime_backends", manifest["runtime_backend"])
