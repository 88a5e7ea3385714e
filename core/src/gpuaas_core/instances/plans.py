"""Plans: the effects, machines, cost and payer of a request, returned for `validate_only`. Nothing is written.

The plan of an update also shows the effect of each changed input, as declared in the app's manifest (`input_effects`).
A change that the app declares as `refused` never becomes an operation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from sqlalchemy import Connection

from ..capacity.prices import hourly_prices
from ..catalog.manifest_types import InputEffect, Manifest
from ..kit.json_types import Json, JsonValue, is_object
from ..kit.wire import canonical
from . import schemas
from .errors import ChangeRefused
from .placement import Placement
from .rows import InstanceRow, MemberRow

REFUSED, UNKNOWN = "refused", "unknown"
SENTENCES = {
    "pushed": "Applied while everything goes on running.",
    "needs_restart": "A service of the app is restarted; running work goes on.",
    "needs_drain": "The workers it touches must be free of work first.",
    REFUSED: "It stays as it was when the instance was deployed.",
    UNKNOWN: "The app does not say what changing this does.",
}


class Host(Protocol):
    @property
    def node_name(self) -> str: ...
    @property
    def address(self) -> str: ...


def hosts_of(placement: Placement, found: Mapping[str, Host]) -> list[schemas.PlannedHost]:
    on: dict[str, list[str]] = {}
    for component, chosen in placement.items():
        for allocation in chosen:
            on.setdefault(allocation, []).append(component)
    return [
        schemas.PlannedHost(
            allocation_id=one, node_name=found[one].node_name, address=found[one].address, components=components
        )
        for one, components in on.items()
    ]


def hosts_of_members(there: Sequence[MemberRow]) -> list[schemas.PlannedHost]:
    placement: Placement = {}
    for member in there:
        placement.setdefault(member.component_key, []).append(member.allocation_id)
    return hosts_of(placement, {member.allocation_id: member for member in there})


def planned(
    tx: Connection,
    summary: str,
    hosts: Sequence[schemas.PlannedHost],
    project_id: str,
    *,
    app_slug: str,
    version: str,
    topology: str,
    inputs: Json,
    warnings: Sequence[str] = (),
    changes: Sequence[schemas.ChangeView] = (),
) -> schemas.PlannedView:
    plan = schemas.PlanView(
        summary=summary,
        app_slug=app_slug,
        version=version,
        topology=topology,
        hosts=_priced(tx, hosts),
        inputs=dict(inputs),
        warnings=list(warnings),
        changes=list(changes),
        charged_to=project_id,
    )
    return schemas.PlannedView(plan=plan)


def planned_for(
    tx: Connection,
    instance: InstanceRow,
    summary: str,
    hosts: Sequence[schemas.PlannedHost],
    *,
    inputs: Json | None = None,
    warnings: Sequence[str] = (),
    changes: Sequence[schemas.ChangeView] = (),
) -> schemas.PlannedView:
    """Build the plan of a change to an existing instance."""
    return planned(
        tx,
        summary,
        hosts,
        instance.project_id,
        app_slug=instance.app_slug,
        version=instance.version,
        topology=instance.topology,
        inputs=instance.inputs if inputs is None else inputs,
        warnings=warnings,
        changes=changes,
    )


def _priced(tx: Connection, hosts: Sequence[schemas.PlannedHost]) -> list[schemas.PlannedHost]:
    """Return the hosts with their SKU and price per hour. A host without a known price is returned unchanged."""
    prices = hourly_prices(tx, [host.allocation_id for host in hosts])
    return [
        host.model_copy(
            update={
                "sku": price.sku,
                "price_micros_per_hour": price.price_micros_per_hour,
                "currency": price.currency,
            }
        )
        if (price := prices.get(host.allocation_id))
        else host
        for host in hosts
    ]


def changes(manifest: Manifest, old: Json, new: Json) -> list[schemas.ChangeView]:
    """Compare the old and new inputs, and return each difference with its effect. An omitted input counts as its
    default."""
    declared = manifest.get("input_effects", {})
    return list(_differing("", _filled(manifest, old), _filled(manifest, new), declared))


def check_changes(found: list[schemas.ChangeView]) -> None:
    refused = [one for one in found if one.effect == REFUSED]
    if refused:
        errors = [{"pointer": f"/inputs{one.field}", "message": one.sentence} for one in refused]
        named = ", ".join(one.field.lstrip("/") for one in refused)
        raise ChangeRefused(f"The app does not let this change: {named}. {refused[0].sentence}", errors=errors)


def _differing(at: str, old: Json, new: Json, declared: dict[str, InputEffect]) -> Iterator[schemas.ChangeView]:
    for key in sorted({*old, *new}):
        here, before, after = f"{at}/{_escaped(key)}", old.get(key), new.get(key)
        if key in old and key in new and canonical(before) == canonical(after):
            continue
        deeper = any(pointer.startswith(f"{here}/") for pointer in declared)
        inside, beside = before or {}, after or {}
        if deeper and is_object(inside) and is_object(beside):
            yield from _differing(here, inside, beside, declared)
        else:
            yield _change(here, before, after, declared)


def _change(field: str, old: JsonValue, new: JsonValue, declared: dict[str, InputEffect]) -> schemas.ChangeView:
    known = next((declared[pointer] for pointer in _upwards(field) if pointer in declared), None)
    effect = known["effect"] if known else UNKNOWN
    sentence = (known.get("sentence") if known else None) or SENTENCES[effect]
    return schemas.ChangeView(field=field, old=old, new=new, effect=effect, sentence=sentence)


def _upwards(pointer: str) -> Iterator[str]:
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]


def _filled(manifest: Manifest, inputs: Json) -> Json:
    properties = manifest["inputs_schema"].get("properties")
    form: Json = properties if is_object(properties) else {}
    defaults = {key: rule["default"] for key, rule in form.items() if is_object(rule) and "default" in rule}
    return {**defaults, **inputs}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
