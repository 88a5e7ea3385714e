"""In which modes an instance effectively runs: a pure function of overlays, the app's manifest, and the caller's hints.

A request may only hint. What the app supports and every overlay allows is left; of that the hinted value is taken, or
the first in the order below. `instances` shows what was asked for and what it became, with these reasons.
"""

from collections.abc import Mapping, Sequence
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

# Every value a closed field can have, for those who want to see all of them judged.
VOCABULARY: dict[str, tuple[str, ...]] = {"operating_modes": tuple(FITTING)} | {
    field: tuple(dict.fromkeys(value for fitting in FITTING.values() for value in fitting[field]))
    for field in ("control_plane_scopes", "tenant_boundary_modes")
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

    def columns(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.reasons}


@dataclass(frozen=True)
class _Chosen:
    value: str
    ruling: Ruling


def declares(manifest: Mapping[str, Any], field: str) -> tuple[str, ...]:
    return tuple(manifest.get(field) or DEFAULTS[field])


def decide_modes(overlays: Sequence[Overlay], manifest: Mapping[str, Any], asked: Mapping[str, str | None]) -> Modes:
    """`asked`: hints by the names of the four; whoever asks for the platform's control plane asks to be managed."""
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
    refused = next((one.ruling for one in chosen.values() if not one.ruling.allowed), None)
    return Modes(
        **{name: one.value for name, one in chosen.items()},
        reasons={name: one.ruling.reason for name, one in chosen.items()},
        refused=f"{refused.reason[0].upper()}{refused.reason[1:]}." if refused else None,
        matched=refused.matched if refused else (),
    )


def _mode(overlays: Sequence[Overlay], manifest: Mapping[str, Any], wanted: str | None) -> _Chosen:
    """The hint, if it may be. Otherwise it gives way, but nobody who asks to be managed is left to themselves."""
    app, supported = manifest["app_slug"], declares(manifest, "operating_modes")
    order = [mode for mode in FITTING if mode in supported]
    rulings = [_Chosen(mode, judge_mode(overlays, app, mode)) for mode in order]
    if wanted == NEEDS_ENABLING:
        enabled = _Chosen(wanted, judge_mode(overlays, app, wanted))
        if enabled.ruling.allowed and wanted not in supported:
            return _Chosen(wanted, Ruling(False, f"the app {app!r} does not support {wanted}"))
        return enabled
    possible = [one for one in rulings if one.ruling.allowed]
    hinted = [one for one in possible if one.value == wanted]
    return (hinted or possible or rulings)[0]


def _fitting(
    overlays: Sequence[Overlay], manifest: Mapping[str, Any], field: str, mode: str, wanted: str | None
) -> _Chosen:
    """What fits the mode, the app supports and policy allows: the hint if it is one of them, otherwise the first."""
    order = FITTING[mode][field]
    supported = [value for value in order if value in declares(manifest, field)]
    if not supported:
        why = f"the app supports none of the {field} that {mode} can have: {', '.join(order)}"
        return _Chosen(order[0], Ruling(False, why))
    rulings = [_Chosen(value, judge(overlays, field, value)) for value in supported]
    possible = [one for one in rulings if one.ruling.allowed]
    hinted = [one for one in possible if one.value == wanted]
    return (hinted or possible or rulings)[0]
