"""The evaluator of policies: a pure function that decides whether overlays allow a value of a field, and gives the
reason and the deciding overlays.

An overlay is one policy of the platform, a tenant, a project or an entitlement. Each overlay lists values per field, as
an allow-list (`only`), a deny-list (`deny`), or both. Every overlay must allow a value. One refusal is enough: a lower
level can only restrict, the order of overlays never matters, and nothing overrides a deny of the platform. Values are
compared exactly, never by prefix. An overlay that cannot be parsed refuses everything, and a missing or malformed value
is always refused.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from ..authz.evaluate import PLATFORM, Place
from ..kit.json_types import is_array, is_object

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


Rule = dict[str, list[str]]  # `only`, `deny` or both, each with values
Rules = dict[str, Rule]  # by field
Enables = dict[str, list[str]]  # mode to apps


@dataclass(frozen=True)
class Contents:
    """The parsed rules of an overlay."""

    rules: Rules
    enables: Enables | None


@dataclass(frozen=True)
class Overlay:
    id: str
    place: Place
    rules: object  # as stored, so possibly unreadable: `contents` has them checked
    enables: object = None  # platform only
    name: str = ""
    reason: str = ""

    @cached_property
    def contents(self) -> Contents | None:
        """The parsed rules, or None if they are invalid. Cached, because one overlay is evaluated for many values."""
        rules, enables = self.rules, self.enables
        if not _are_rules(rules):
            return None
        if enables is None:
            return Contents(rules, None)
        return Contents(rules, enables) if self.place == PLATFORM and _are_enables(enables) else None


@dataclass(frozen=True)
class Ruling:
    allowed: bool
    reason: str
    level: str | None = None  # the deciding level; None: no overlay restricts it
    matched: tuple[str, ...] = ()  # ids of the overlays that refuse, or that list the allowed value


@dataclass(frozen=True)
class Effective:
    """The combined rulings of all overlays for a field. `others` is the ruling for every value that no overlay
    lists."""

    only: frozenset[str] | None  # None: no overlay has an allow-list
    denied: frozenset[str]
    values: dict[str, Ruling]
    others: Ruling


def judge(overlays: Iterable[Overlay], field: str, value: object) -> Ruling:
    if field not in FIELDS:
        return Ruling(False, f"there is no policy field {field!r}")
    noun = FIELDS[field]
    if not isinstance(value, str) or not NAME.fullmatch(value):
        return Ruling(False, f"the {noun} is missing or malformed, so no policy can allow it")
    return _ruling(overlays, field, value, f"the {noun} {value!r}")


def judge_mode(overlays: Iterable[Overlay], app: str, mode: object) -> Ruling:
    """Decide whether an app may run in an operating mode. The mode `platform_managed` is refused unless a platform
    policy enables it for the app."""
    known = list(overlays)
    ruling = judge(known, "operating_modes", mode)
    if not ruling.allowed or mode != NEEDS_ENABLING:
        return ruling
    enabling = tuple(overlay.id for overlay in _ranked(known) if app in enabled_apps(overlay))
    if not enabling:
        return Ruling(False, f"no platform policy enables {NEEDS_ENABLING} for the app {app!r}", "platform")
    return Ruling(True, f"a platform policy enables {NEEDS_ENABLING} for the app {app!r}", "platform", enabling)


def allowed(overlays: Iterable[Overlay], field: str, values: Iterable[str]) -> frozenset[str]:
    known = list(overlays)
    return frozenset(value for value in values if judge(known, field, value).allowed)


def effective(overlays: Sequence[Overlay], field: str, known: Iterable[str] = ()) -> Effective:
    """Return the combined rules for a field, with a ruling for every value that an overlay lists and for every `known`
    value."""
    readable_rules = [overlay.contents.rules for overlay in overlays if overlay.contents]
    rules = [rules[field] for rules in readable_rules if field in rules]
    lists = [frozenset(rule["only"]) for rule in rules if "only" in rule]
    denied = frozenset(value for rule in rules for value in rule.get("deny", ()))
    named = denied.union(*lists, known)
    return Effective(
        only=lists[0].intersection(*lists[1:]) - denied if lists else None,
        denied=denied,
        values={value: judge(overlays, field, value) for value in sorted(named)},
        others=_ruling(overlays, field, None, f"every other {FIELDS[field]}"),
    )


def readable(overlay: Overlay) -> bool:
    return overlay.contents is not None


def enabled_apps(overlay: Overlay) -> list[str]:
    """Return the apps for which this overlay enables the mode `platform_managed`; empty if it enables none or is
    invalid."""
    contents = overlay.contents
    return contents.enables[NEEDS_ENABLING] if contents and contents.enables else []


def _are_rules(value: object) -> TypeGuard[Rules]:
    return is_object(value) and all(field in FIELDS and _is_rule(rule) for field, rule in value.items())


def _are_enables(value: object) -> TypeGuard[Enables]:
    return is_object(value) and set(value) == {NEEDS_ENABLING} and _are_names(value[NEEDS_ENABLING])


def _is_rule(value: object) -> TypeGuard[Rule]:
    return (
        is_object(value) and bool(value) and value.keys() <= {"only", "deny"} and all(map(_are_names, value.values()))
    )


def _are_names(value: object) -> TypeGuard[list[str]]:
    return is_array(value) and all(isinstance(name, str) and NAME.fullmatch(name) for name in value)


def _ruling(overlays: Iterable[Overlay], field: str, value: str | None, what: str) -> Ruling:
    ranked = _ranked(overlays)
    refusing = [(overlay, why) for overlay in ranked if (why := _objection(overlay, field, value))]
    if refusing:
        first, why = refusing[0]
        because = f": {first.reason.rstrip('.')}" if first.reason else ""
        ids = tuple(overlay.id for overlay, _ in refusing)
        return Ruling(False, f"{what} {why} {_called(first)}{because}", first.place[0], ids)
    naming = [overlay for overlay in ranked if value in _rule(overlay, field).get("only", ())]
    if not naming:
        return Ruling(True, f"no policy restricts {what}")
    ids = tuple(overlay.id for overlay in naming)
    return Ruling(True, f"{what} is allowed by {_called(naming[0])}", naming[0].place[0], ids)


def _objection(overlay: Overlay, field: str, value: str | None) -> str | None:
    """Return why this overlay refuses the value, or None if the overlay allows the value. `value=None` stands for every
    value that no overlay lists."""
    if not readable(overlay):
        return "is denied because of the unreadable rules of"
    rule = _rule(overlay, field)
    if value in rule.get("deny", ()):
        return "is denied by"
    if "only" in rule and value not in rule["only"]:
        return "is not in the allow-list of"
    return None


def _rule(overlay: Overlay, field: str) -> Rule:
    return (overlay.contents.rules if overlay.contents else {}).get(field, {})


def _ranked(overlays: Iterable[Overlay]) -> list[Overlay]:
    return sorted(overlays, key=lambda o: (LEVELS.index(o.place[0]) if o.place[0] in LEVELS else -1, o.id))


def _called(overlay: Overlay) -> str:
    named = f"{overlay.name!r}" if overlay.name else overlay.id
    return f"the {overlay.place[0]} policy {named}"
