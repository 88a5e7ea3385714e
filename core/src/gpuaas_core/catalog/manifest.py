"""The manifest: what an app declares to the platform. It is validated when a version is added, and read when it is
deployed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, TypeGuard

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic_core import from_json, to_json
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from ..kit.json_schema import Validator, pattern_errors, translated, validator
from ..kit.json_types import Json, JsonValue
from ..kit.problems import Problem
from ..kit.wire import canonical, counted
from ..policy.modes import DEFAULTS, FITTING, declares
from .input_errors import describe
from .manifest_types import InputEffect, Manifest, Timing

SCHEMA: dict[str, Any] = json.loads(resources.files(__package__ or "").joinpath("manifest.schema.json").read_text())


_validator = validator(SCHEMA)
_NOTHING_ELSE: Registry[Any] = Registry()
MOST_INPUT_BYTES = 64 * 1024
MOST_FORMS = 200  # validators that are kept


class ManifestInvalid(Problem):
    status, code, title = 422, "manifest_invalid", "Invalid manifest"
    way_out = "Correct the fields listed in `errors`; the schema is contracts/manifest.schema.json."


class InputsInvalid(Problem):
    status, code, title = 422, "inputs_invalid", "Invalid inputs"
    way_out = (
        "Correct the inputs listed in `errors`; the app's schema is in its catalog entry (`gpuaas catalog -o json`)."
    )


def check_manifest(manifest: Json, *, app_slug: str, version: str) -> None:
    errors = _consistency(manifest, app_slug, version) if _is_manifest(manifest) else _errors(_validator, manifest)
    if errors:
        raise ManifestInvalid(f"The manifest has {counted(len(errors), 'problem')}.", errors=errors)


def _is_manifest(value: Json) -> TypeGuard[Manifest]:
    """Whether the value follows the manifest schema. The types in `manifest_types` must match that schema."""
    return not list(_validator.iter_errors(value))


def check_inputs(manifest: Manifest, inputs: Json) -> None:
    size = len(canonical(inputs).encode())
    if size > MOST_INPUT_BYTES:
        errors = [_error("/inputs", f"{size} bytes as JSON; at most {MOST_INPUT_BYTES} are allowed")]
        raise InputsInvalid("The inputs are too large.", errors=errors)
    errors = _errors(_form(to_json(manifest["inputs_schema"])), inputs, prefix="/inputs")
    if errors:
        verb = "does" if len(errors) == 1 else "do"
        raise InputsInvalid(f"{counted(len(errors), 'input')} {verb} invalid.", errors=errors)


@lru_cache(MOST_FORMS)
def _form(schema: bytes) -> Validator:
    """Return the validator for a schema of inputs, given as JSON. It is cached, so it is built once for all deploys of
    a version."""
    return validator(from_json(schema), registry=_NOTHING_ELSE)


def _consistency(manifest: Manifest, app_slug: str, version: str) -> list[dict[str, str]]:
    errors: list[dict[str, str]] = []
    if (manifest["app_slug"], manifest["version"]) != (app_slug, version):
        errors.append(_error("/version", "app_slug and version must be those of the request"))
    errors += _form_errors(manifest["inputs_schema"])
    errors += _effect_errors(manifest["inputs_schema"], manifest.get("input_effects", {}))
    keys = {component["key"] for component in manifest["components"]}
    for number, topology in enumerate(manifest["topologies"]):
        for key, rule in topology["components"].items():
            named = {key, rule.get("shares_with") or key, rule.get("may_share_with") or key}
            if not named <= keys:
                errors.append(_error(f"/topologies/{number}/components/{key}", "names an undeclared component"))
    errors += _component_action_errors(manifest)
    return errors + _operation_errors(manifest.get("operations", {})) + _mode_errors(manifest)


def _component_action_errors(manifest: Manifest) -> list[dict[str, str]]:
    """Return an error for each action of a component that the manifest does not declare as a member action."""
    declared = {action["key"] for action in manifest.get("actions", ()) if action["target"] == "member"}
    return [
        _error(f"/components/{number}/actions", f"{key!r} is not a member action of this manifest")
        for number, component in enumerate(manifest["components"])
        for key in component.get("actions", ())
        if key not in declared
    ]


def _effect_errors(form: Json, effects: Mapping[str, InputEffect]) -> list[dict[str, str]]:
    """Return an error for each input effect that names no input, because the effect would never be shown."""
    return [_error(f"/input_effects/{pointer}", "names no input") for pointer in effects if not _leads(form, pointer)]


def _leads(form: JsonValue, pointer: str) -> bool:
    for part in pointer.split("/")[1:]:
        known = form.get("properties") if isinstance(form, Mapping) else None
        if not isinstance(known, Mapping):
            return True  # declared by a reference or a pattern, which this check does not follow
        if part not in known:
            return False
        form = known[part]
    return True


def _operation_errors(operations: Mapping[str, Timing]) -> list[dict[str, str]]:
    return [
        _error(f"/operations/{kind}", "a phase is expected to take longer than the operation's time limit")
        for kind, rule in operations.items()
        if rule.get("expected_phase_s", 0) > rule.get("deadline_s", float("inf"))
    ]


def _mode_errors(manifest: Manifest) -> list[dict[str, str]]:
    """Return an error for each operating mode without a matching control plane scope or boundary mode, because the mode
    could never be deployed."""
    errors: list[dict[str, str]] = []
    declared = {field: declares(manifest, field) for field in DEFAULTS}
    for mode in declared["operating_modes"]:
        for field, fitting in FITTING[mode].items():
            if not set(declared[field]) & set(fitting):
                errors.append(_error(f"/{field}", f"{mode} needs one of: {', '.join(fitting)}"))
    return errors


def _form_errors(form: Json) -> list[dict[str, str]]:
    """Return the errors of a schema of inputs. It must be a valid JSON Schema that refers only to itself, because
    references are never fetched."""
    if unreadable := pattern_errors(form):
        return [_error("/inputs_schema", sentence) for sentence in unreadable]
    form = translated({**form})  # as it is used when inputs are checked, so a broken reference is rejected now
    try:
        Draft202012Validator.check_schema(form)
    except SchemaError as error:
        return [_error("/inputs_schema", f"not a JSON Schema: {error.message}")]
    resolver = _NOTHING_ELSE.resolver_with_root(DRAFT202012.create_resource(form))
    errors: list[dict[str, str]] = []
    for ref in _references(form):
        try:
            resolver.lookup(ref)
        except Unresolvable:
            errors.append(_error("/inputs_schema", f"refers to {ref!r}, which is not inside this schema"))
    return errors


def _references(value: JsonValue) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (ref for name in ("$ref", "$dynamicRef") if isinstance(ref := value.get(name), str))
        for inside in value.values():
            yield from _references(inside)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inside in value:
            yield from _references(inside)


def _errors(validator: Validator, value: Json, prefix: str = "") -> list[dict[str, str]]:
    errors = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
    return [_error(prefix + "".join(f"/{part}" for part in e.absolute_path) or "/", describe(e)[:300]) for e in errors][
        :50
    ]


def _error(pointer: str, message: str) -> dict[str, str]:
    return {"pointer": pointer, "message": message}
