"""The manifest says what the app really accepts."""

import json
from pathlib import Path

import jsonschema
import pytest
from gpuaas_slurm import manifest
from gpuaas_slurm.plan import INPUTS
from gpuaas_slurm.validate import PATTERNS

MANIFEST = manifest.load()
SCHEMA = MANIFEST["inputs_schema"]


def test_the_inputs_schema_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["additionalProperties"] is False


def test_the_manifest_keeps_the_platforms_contract() -> None:
    contract = Path(__file__).parents[3] / "contracts" / "manifest.schema.json"
    jsonschema.Draft202012Validator(json.loads(contract.read_text())).validate(MANIFEST)


def test_manifest_and_plan_know_the_same_inputs() -> None:
    assert set(SCHEMA["properties"]) == INPUTS


def test_manifest_and_validator_have_the_same_patterns() -> None:
    for name in ("cluster_name", "partition", "gpu_type"):
        assert SCHEMA["properties"][name]["pattern"] == f"^{PATTERNS[name][0].pattern}$"


def test_defaults_are_valid() -> None:
    defaults = {name: rule["default"] for name, rule in SCHEMA["properties"].items() if "default" in rule}
    jsonschema.Draft202012Validator(SCHEMA).validate(defaults)


@pytest.mark.parametrize(
    "inputs", [{"partition": "Main"}, {"gpu_type": "a;b"}, {"default_time_limit_minutes": 0}, {"x": 1}]
)
def test_bad_inputs_are_refused_by_the_platform_already(inputs: dict[str, object]) -> None:
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(inputs))


def test_whatever_waits_for_jobs_may_wait_for_as_long_as_a_person_may_ask() -> None:
    for kind in ("drain_member", "remove_member", "replace_member"):
        assert MANIFEST["operations"][kind]["deadline_s"] == 7 * 24 * 3600


def test_topologies_name_known_components() -> None:
    keys = {c["key"] for c in MANIFEST["components"]}
    for topology in MANIFEST["topologies"]:
        assert set(topology["components"]) <= keys
