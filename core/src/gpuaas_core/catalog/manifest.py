"""The manifest: what an app tells the platform about itself. Checked when added, used when deployed."""

import json
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from ..kit.problems import Problem

SCHEMA: dict[str, Any] = json.loads(resources.files(__package__ or "").joinpath("manifest.schema.json").read_text())
_validator = Draft202012Validator(SCHEMA)


class ManifestInvalid(Problem):
    status, code, title = 422, "manifest_invalid", "The manifest is not valid"
    way_out = "Correct the places listed in `errors`; the schema is contracts/manifest.schema.json."


class InputsInvalid(Problem):
    status, code, title = 422, "inputs_invalid", "The inputs do not fit the app's form"
    way_out = (
        "Correct the inputs listed in `errors`; the app's schema is in its catalog entry (`gpuaas catalog -o json`)."
    )


def check_manifest(manifest: dict[str, Any], *, app_slug: str, version: str) -> None:
    errors = _errors(_validator, manifest)
    if not errors:
        errors = _consistency(manifest, app_slug, version)
    if errors:
        raise ManifestInvalid(f"The manifest has {len(errors)} problem(s).", errors=errors)


def check_inputs(manifest: dict[str, Any], inputs: dict[str, Any]) -> None:
    errors = _errors(Draft202012Validator(manifest["inputs_schema"]), inputs, prefix="/inputs")
    if errors:
        raise InputsInvalid(f"{len(errors)} input(s) do not fit.", errors=errors)


def _consistency(manifest: dict[str, Any], app_slug: str, version: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    if (manifest["app_slug"], manifest["version"]) != (app_slug, version):
        found.append(_error("/version", "app_slug and version must be those of the request"))
    try:
        Draft202012Validator.check_schema(manifest["inputs_schema"])
    except SchemaError as error:
        found.append(_error("/inputs_schema", f"not a JSON Schema: {error.message}"))
    keys = {component["key"] for component in manifest["components"]}
    for number, topology in enumerate(manifest["topologies"]):
        for key, rule in topology["components"].items():
            if key not in keys or rule.get("shares_with", key) not in (keys | {None}):
                found.append(_error(f"/topologies/{number}/components/{key}", "names an undeclared component"))
    return found


def _errors(validator: Draft202012Validator, value: Any, prefix: str = "") -> list[dict[str, str]]:
    found = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
    return [_error(prefix + "".join(f"/{part}" for part in e.absolute_path) or "/", e.message[:300]) for e in found][
        :50
    ]


def _error(pointer: str, message: str) -> dict[str, str]:
    return {"pointer": pointer, "message": message}
