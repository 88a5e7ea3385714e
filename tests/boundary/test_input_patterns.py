"""What the platform accepts as an input, the app accepts too: no input of Slurm's form takes a trailing newline."""

from collections.abc import Iterator
from typing import Any

import pytest
from gpuaas_core.catalog.manifest import InputsInvalid, check_inputs
from gpuaas_slurm import manifest
from hypothesis import given, settings
from hypothesis import strategies as st

FORM = manifest.load()["inputs_schema"]
FREE_TEXT = {"/properties/gpu_types/items/properties/model"}  # only compared with what machines report, never written


def _texts(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of a text in the form, with its place."""
    if isinstance(schema, list):
        for number, inside in enumerate(schema):
            yield from _texts(inside, f"{path}/{number}")
    if not isinstance(schema, dict):
        return
    kinds = schema.get("type", [])
    if "string" in ([kinds] if isinstance(kinds, str) else kinds):
        yield path, schema
    for name, inside in schema.items():
        if name not in ("default", "const", "enum", "examples"):
            yield from _texts(inside, f"{path}/{name}")


TEXTS = dict(_texts(FORM))


def _values(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    if "enum" in schema:
        return st.sampled_from([one for one in schema["enum"] if isinstance(one, str)])
    longest = schema.get("maxLength", 200)
    return st.from_regex(schema["pattern"].removesuffix("$") + r"\Z").filter(lambda text: len(text) < longest)


def test_the_form_has_texts_to_try() -> None:
    assert len(TEXTS) > 10
    assert {path for path, schema in TEXTS.items() if not {"enum", "pattern"} & schema.keys()} == FREE_TEXT


@pytest.mark.parametrize("path", sorted(TEXTS.keys() - FREE_TEXT))
def test_no_text_of_slurms_form_takes_a_trailing_newline(path: str) -> None:
    form = {"inputs_schema": {"type": "object", "properties": {"value": TEXTS[path]}}}

    @settings(max_examples=10, deadline=None, database=None)
    @given(_values(TEXTS[path]))
    def refused(text: str) -> None:
        check_inputs(form, {"value": text})
        with pytest.raises(InputsInvalid):
            check_inputs(form, {"value": f"{text}\n"})

    refused()


TRIED = [  # what was accepted once, and stopped every later operation of the cluster
    {"cluster_name": "hpc\n"},
    {"partition": "main\n"},
    {"gpu_type": "a100\n"},
    {"slurm_conf": {"DebugFlags": "Agent\n"}},
    {"slurm_conf": {"PreemptExemptTime": "1\n"}},
    {"partitions": [{"name": "main\n"}]},
]


@pytest.mark.parametrize("inputs", TRIED, ids=str)
def test_the_whole_form_refuses_what_stopped_a_cluster_before(inputs: dict[str, Any]) -> None:
    with pytest.raises(InputsInvalid):
        check_inputs({"inputs_schema": FORM}, inputs)
