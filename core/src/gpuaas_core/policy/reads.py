"""Reads stored policies as overlays, and checks values for a project against them. Other rooms call `overlays_for` and
`require`."""

import json
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, select, tuple_

from ..authz.evaluate import Place, Scope
from ..kit.json_types import Json, JsonValue
from ..kit.problems import NotFound
from ..kit.rows import Query
from . import schemas
from .errors import PolicyDenied
from .evaluate import FIELDS, NEEDS_ENABLING, Overlay, Ruling, effective, enabled_apps, judge, judge_mode
from .modes import VOCABULARY
from .rows import PolicyRow
from .tables import policies

_place = tuple_(policies.c.scope_kind, policies.c.scope_id)
_POLICIES = Query(select(policies), PolicyRow)
_AT_PLACES = _POLICIES.where(_place.in_(bindparam("places", expanding=True))).order_by(policies.c.id)
_NAMED = _POLICIES.where(
    policies.c.scope_kind == bindparam("scope_kind"),
    policies.c.scope_id == bindparam("scope_id"),
    policies.c.name == bindparam("name"),
)
_NAMED_LOCKED = _NAMED.locked()


def entitlement_place(project_id: str, app_slug: str) -> Place:
    return ("entitlement", f"{project_id}/{app_slug}")


def overlays_at(tx: Connection, places: Iterable[Place]) -> list[Overlay]:
    return [overlay_of(row) for row in _AT_PLACES.all(tx, places=list(places))]


def overlays_for(tx: Connection, scope: Scope, app_slug: str | None = None) -> list[Overlay]:
    """Return all overlays that apply to a project: those of the platform, of its tenant, of the project itself and,
    with `app_slug`, of its entitlement to that app."""
    own = [entitlement_place(scope.project_id, app_slug)] if scope.project_id and app_slug else []
    return overlays_at(tx, [*scope.chain, *own])


def overlay_of(row: PolicyRow) -> Overlay:
    place, enables = (row.scope_kind, row.scope_id), _parse(row.enables)
    return Overlay(row.id, place, _parse(row.rules), enables, row.name, row.reason)


def require(overlays: Sequence[Overlay], field: str, value: JsonValue, of: str = "") -> None:
    """Raise PolicyDenied, with the reason and the ids of the policies that refuse, unless the overlays allow the
    value."""
    ruling = judge(overlays, field, value)
    if not ruling.allowed:
        ruled: Json = {"field": field, "value": value, "level": ruling.level, "matched": list(ruling.matched)}
        sentence = f"{of}: {ruling.reason}." if of else f"{ruling.reason[0].upper()}{ruling.reason[1:]}."
        raise PolicyDenied(sentence, extra={"policy": ruled})


def policies_at(place: Place) -> Query[PolicyRow]:
    return _POLICIES.where(policies.c.scope_kind == place[0], policies.c.scope_id == place[1])


def policy_row(tx: Connection, place: Place, name: str, *, lock: bool = False) -> PolicyRow | None:
    query = _NAMED_LOCKED if lock else _NAMED
    return query.first(tx, scope_kind=place[0], scope_id=place[1], name=name)


def get_policy(tx: Connection, place: Place, name: str) -> schemas.PolicyView:
    row = policy_row(tx, place, name)
    if row is None:
        raise NotFound(f"Policy {name!r} not found.")
    return policy_view(row)


def policy_view(row: PolicyRow) -> schemas.PolicyView:
    contents = overlay_of(row).contents
    shown = {
        "rules": contents.rules if contents else None,
        "enables": contents.enables if contents else None,
        "readable": contents is not None,
        "etag": f"{row.id}.{row.revision}",
    }
    return schemas.PolicyView.model_validate(vars(row) | shown)


def effective_view(tx: Connection, scope: Scope, app_slug: str | None) -> schemas.EffectiveView:
    overlays = overlays_for(tx, scope, app_slug)
    return schemas.EffectiveView(
        project_id=str(scope.project_id),
        app_slug=app_slug,
        fields=[_field(overlays, field) for field in FIELDS],
        enables={NEEDS_ENABLING: sorted({app for overlay in overlays for app in enabled_apps(overlay)})},
        policies=[overlay.id for overlay in overlays],
    )


def explain(tx: Connection, scope: Scope, field: str, value: str, app_slug: str | None) -> schemas.RulingView:
    overlays = overlays_for(tx, scope, app_slug)
    if field == "operating_modes" and app_slug:
        return _ruling(field, value, judge_mode(overlays, app_slug, value))
    return _ruling(field, value, judge(overlays, field, value))


def _field(overlays: list[Overlay], field: str) -> schemas.FieldView:
    field_rules = effective(overlays, field, VOCABULARY.get(field, ()))
    return schemas.FieldView(
        field=field,
        only=None if field_rules.only is None else sorted(field_rules.only),
        denied=sorted(field_rules.denied),
        values=[_ruling(field, value, ruling) for value, ruling in field_rules.values.items()],
        others=_ruling(field, None, field_rules.others),
    )


def _ruling(field: str, value: str | None, ruling: Ruling) -> schemas.RulingView:
    return schemas.RulingView.model_validate(vars(ruling) | {"field": field, "value": value})


def _parse(text: str | None) -> object:
    """Parse stored rules as JSON. Invalid JSON is returned as text: the overlay then counts as invalid and refuses
    everything."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text
