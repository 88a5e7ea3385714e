"""What changing an input of a running instance does, as its app declares it in the manifest (`input_effects`).

The plan of an update shows it before anything happens; what an app calls `refused` never becomes an operation.
"""

from collections.abc import Iterator
from typing import Any

from ..kit.wire import canonical
from . import schemas
from .errors import ChangeRefused

Inputs = dict[str, Any]
REFUSED, UNKNOWN = "refused", "unknown"
SENTENCES = {
    "pushed": "Applied while everything goes on running.",
    "needs_restart": "A service of the app is restarted; running work goes on.",
    "needs_drain": "The workers it touches must be free of work first.",
    REFUSED: "It stays as it was when the instance was deployed.",
    UNKNOWN: "The app does not say what changing this does.",
}


def changes(manifest: dict[str, Any], old: Inputs, new: Inputs) -> list[schemas.ChangeView]:
    """What differs, each with its effect. An input left out has its default, so naming the default changes nothing."""
    declared = manifest.get("input_effects", {})
    return list(_differing("", _filled(manifest, old), _filled(manifest, new), declared))


def check_changes(found: list[schemas.ChangeView]) -> None:
    refused = [one for one in found if one.effect == REFUSED]
    if refused:
        errors = [{"pointer": f"/inputs{one.field}", "message": one.sentence} for one in refused]
        named = ", ".join(one.field.lstrip("/") for one in refused)
        raise ChangeRefused(f"The app does not let this change: {named}. {refused[0].sentence}", errors=errors)


def _differing(at: str, old: Inputs, new: Inputs, declared: dict[str, Any]) -> Iterator[schemas.ChangeView]:
    for key in sorted({*old, *new}):
        here, before, after = f"{at}/{_escaped(key)}", old.get(key), new.get(key)
        if key in old and key in new and canonical(before) == canonical(after):
            continue
        deeper = any(pointer.startswith(f"{here}/") for pointer in declared)
        if deeper and isinstance(before or {}, dict) and isinstance(after or {}, dict):
            yield from _differing(here, before or {}, after or {}, declared)
        else:
            yield _change(here, before, after, declared)


def _change(field: str, old: Any, new: Any, declared: dict[str, Any]) -> schemas.ChangeView:
    said: dict[str, Any] = next(
        (declared[pointer] for pointer in _upwards(field) if pointer in declared), {"effect": UNKNOWN}
    )
    sentence = said.get("sentence") or SENTENCES[said["effect"]]
    return schemas.ChangeView(field=field, old=old, new=new, effect=said["effect"], sentence=sentence)


def _upwards(pointer: str) -> Iterator[str]:
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]


def _filled(manifest: dict[str, Any], inputs: Inputs) -> Inputs:
    form = manifest["inputs_schema"].get("properties", {})
    return {key: rule["default"] for key, rule in form.items() if isinstance(rule, dict) and "default" in rule} | inputs


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
