"""Policies as overlays, and their rulings for a project. Other rooms call `overlays_for` and `require`."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, select, tuple_

from ..authz.evaluate import Place, Scope
from ..kit.problems import NotFound
from . import schemas
from .errors import PolicyDenied
from .evaluate import FIELDS, NEEDS_ENABLING, Overlay, Ruling, effective, judge, judge_mode, readable
from .modes import VOCABULARY
from .tables import policies


def entitlement_place(project_id: str, app_slug: str) -> Place:
    return ("entitlement", f"{project_id}/{app_slug}")


def overlays_at(tx: Connection, places: Iterable[Place]) -> list[Overlay]:
    place = tuple_(policies.c.scope_kind, policies.c.scope_id)
    rows = tx.execute(select(policies).where(place.in_(list(places))).order_by(policies.c.id))
    return [overlay_of(row) for row in rows]


def overlays_for(tx: Connection, scope: Scope, app_slug: str | None = None) -> list[Overlay]:
    """All overlays that apply to a project: the platform's, its tenant's, its own, and its entitlement's to an app."""
    own = [entitlement_place(scope.project_id, app_slug)] if scope.project_id and app_slug else []
    return overlays_at(tx, [*scope.chain, *own])


def overlay_of(row: Row[Any]) -> Overlay:
    place, enables = (row.scope_kind, row.scope_id), _parse(row.enables)
    return Overlay(row.id, place, _parse(row.rules), enables, row.name, row.reason)


def require(overlays: Sequence[Overlay], field: str, value: Any, of: str = "") -> None:
    """Raise unless the value is allowed, with the reason and the ids of the policies that refuse."""
    ruling = judge(overlays, field, value)
    if not ruling.allowed:
        ruled = {"field": field, "value": value, "level": ruling.level, "matched": list(ruling.matched)}
        sentence = f"{of}: {ruling.reason}." if of else f"{ruling.reason[0].upper()}{ruling.reason[1:]}."
        raise PolicyDenied(sentence, extra={"policy": ruled})


def policies_at(place: Place) -> Select[Any]:
    return select(policies).where(policies.c.scope_kind == place[0], policies.c.scope_id == place[1])


def policy_row(tx: Connection, place: Place, name: str, *, lock: bool = False) -> Row[Any] | None:
    query = policies_at(place).where(policies.c.name == name)
    return tx.execute(query.with_for_update() if lock else query).first()


def get_policy(tx: Connection, place: Place, name: str) -> schemas.PolicyView:
    row = policy_row(tx, place, name)
    if row is None:
        raise NotFound(f"Policy {name!r} not found.")
    return policy_view(row)


def policy_view(row: Row[Any]) -> schemas.PolicyView:
    overlay = overlay_of(row)
    sound = readable(overlay)
    contents = {"rules": overlay.rules if sound else None, "enables": overlay.enables if sound else None}
    return schemas.PolicyView.model_validate(
        dict(row._mapping) | contents | {"readable": sound, "etag": f"{row.id}.{row.revision}"}
    )


def effective_view(tx: Connection, scope: Scope, app_slug: str | None) -> schemas.EffectiveView:
    overlays = overlays_for(tx, scope, app_slug)
    opened = [o.enables[NEEDS_ENABLING] for o in overlays if readable(o) and o.enables]
    return schemas.EffectiveView(
        project_id=str(scope.project_id),
        app_slug=app_slug,
        fields=[_field(overlays, field) for field in FIELDS],
        enables={NEEDS_ENABLING: sorted({app for apps in opened for app in apps})},
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


def _parse(text: str | None) -> Any:
    """Unparsable rules stay text, which the evaluator treats as unreadable, so the overlay refuses everything."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text
