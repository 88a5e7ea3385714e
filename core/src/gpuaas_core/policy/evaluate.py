"""The evaluator of overlays: a pure function of (overlays, field, value) to a ruling with its reason and rule ids.

Overlays belong to the platform, a tenant, a project or an entitlement. Each lists values per field, as an allow-list
(`only`), a deny-list (`deny`), or both. All of them must allow a value: one refusal is enough, so a lower
level can only restrict, the order never matters, and nothing overrides a deny of the platform. Values are compared
exactly, never by prefix. An unreadable overlay refuses everything; so does a missing or malformed value.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..authz.evaluate import PLATFORM, Place

# Field to the noun for one of its values.
FIELDS: dict[str, str] = {
    "apps": "app",
    "regions": "region",
    "skus": "SKU",
    "artifact_sources": "artifact source",
    "operating_modes": "operating mode",
    "control_plane_scopes": "control plane scope",
    "tenant_boundary_modes": "tenant boundary mode",
    "runtime_backends": "runtime backend",
}
LEVELS = (
    "platform",
    "tenant",
    "project",
    "entitlement",
)  # widest first: the widest level that refuses gives the reason
NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")  # lower case only, so a value has one spelling
NEEDS_ENABLING = "platform_managed"  # the only mode that a platform policy must enable per app


@dataclass(frozen=True)
class Overlay:
    id: str
    place: Place
    rules: Any  # as stored: field to {"only": […], "deny": […]}
    enables: Any = None  # platform only: {"platform_managed": [apps]}
    name: str = ""
    reason: str = ""

    @cached_property
    def sound(self) -> bool:
        """Computed once: an overlay is immutable and is evaluated for many values."""
        return _sound(self)


@dataclass(frozen=True)
class Ruling:
    allowed: bool
    reason: str
    level: str | None = None  # the deciding level; None: no overlay restricts it
    matched: tuple[str, ...] = ()  # ids of the overlays that refuse, or that list the allowed value


@dataclass(frozen=True)
class Effective:
    """A field after all overlays. `others` is the ruling for every value that no overlay lists."""

    only: frozenset[str] | None  # None: no overlay has an allow-list
    denied: frozenset[str]
    values: dict[str, Ruling]
    others: Ruling


def judge(overlays: Iterable[Overlay], field: str, value: Any) -> Ruling:
    if field not in FIELDS:
        return Ruling(False, f"there is no policy field {field!r}")
    noun = FIELDS[field]
    if not isinstance(value, str) or not NAME.fullmatch(value):
        return Ruling(False, f"the {noun} is missing or malformed, so no policy can allow it")
    return _ruling(overlays, field, value, f"the {noun} {value!r}")


def judge_mode(overlays: Iterable[Overlay], app: str, mode: Any) -> Ruling:
    """An operating mode for one app. A mode that needs enabling is refused until a platform policy enables it."""
    known = list(overlays)
    ruling = judge(known, "operating_modes", mode)
    if not ruling.allowed or mode != NEEDS_ENABLING:
        return ruling
    enabling = tuple(o.id for o in _ranked(known) if readable(o) and o.enables and app in o.enables[NEEDS_ENABLING])
    if not enabling:
        return Ruling(False, f"no platform policy enables {NEEDS_ENABLING} for the app {app!r}", "platform")
    return Ruling(True, f"a platform policy enables {NEEDS_ENABLING} for the app {app!r}", "platform", enabling)


def allowed(overlays: Iterable[Overlay], field: str, values: Iterable[str]) -> frozenset[str]:
    known = list(overlays)
    return frozenset(value for value in values if judge(known, field, value).allowed)


def effective(overlays: Sequence[Overlay], field: str, known: Iterable[str] = ()) -> Effective:
    """Every value an overlay lists (and the `known` ones), each with its ruling."""
    rules = [o.rules[field] for o in overlays if readable(o) and field in o.rules]
    lists = [frozenset(rule["only"]) for rule in rules if "only" in rule]
    denied = frozenset(value for rule in rules for value in rule.get("deny", ()))
    named = denied.union(*lists, known)
    return Effective(
        only=frozenset.intersection(*lists) - denied if lists else None,
        denied=denied,
        values={value: judge(overlays, field, value) for value in sorted(named)},
        others=_ruling(overlays, field, None, f"every other {FIELDS[field]}"),
    )


def readable(overlay: Overlay) -> bool:
    return overlay.sound


def _sound(overlay: Overlay) -> bool:
    rules = overlay.rules
    if not isinstance(rules, dict) or not all(field in FIELDS and _rule_readable(rules[field]) for field in rules):
        return False
    enables = overlay.enables
    if enables is None:
        return True
    return (
        overlay.place == PLATFORM
        and isinstance(enables, dict)
        and enables.keys() == {NEEDS_ENABLING}
        and _names(enables[NEEDS_ENABLING])
    )


def _rule_readable(rule: Any) -> bool:
    return isinstance(rule, dict) and bool(rule) and rule.keys() <= {"only", "deny"} and all(map(_names, rule.values()))


def _names(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) and NAME.fullmatch(value) for value in values)


def _ruling(overlays: Iterable[Overlay], field: str, value: str | None, what: str) -> Ruling:
    ranked = _ranked(overlays)
    refusing = [(overlay, why) for overlay in ranked if (why := _objection(overlay, field, value))]
    if refusing:
        first, why = refusing[0]
        because = f": {first.reason.rstrip('.')}" if first.reason else ""
        ids = tuple(overlay.id for overlay, _ in refusing)
        return Ruling(False, f"{what} {why} {_called(first)}{because}", first.place[0], ids)
    naming = [o for o in ranked if value in o.rules.get(field, {}).get("only", ())]
    if not naming:
        return Ruling(True, f"no policy restricts {what}")
    ids = tuple(overlay.id for overlay in naming)
    return Ruling(True, f"{what} is allowed by {_called(naming[0])}", naming[0].place[0], ids)


def _objection(overlay: Overlay, field: str, value: str | None) -> str | None:
    """Why this overlay refuses the value (None: any unlisted value), or None if it allows it."""
    if not readable(overlay):
        return "is denied because of the unreadable rules of"
    rule = overlay.rules.get(field, {})
    if value in rule.get("deny", ()):
        return "is denied by"
    if "only" in rule and value not in rule["only"]:
        return "is not in the allow-list of"
    return None


def _ranked(overlays: Iterable[Overlay]) -> list[Overlay]:
    return sorted(overlays, key=lambda o: (LEVELS.index(o.place[0]) if o.place[0] in LEVELS else -1, o.id))


def _called(overlay: Overlay) -> str:
    named = f"{overlay.name!r}" if overlay.name else overlay.id
    return f"the {overlay.place[0]} policy {named}"
