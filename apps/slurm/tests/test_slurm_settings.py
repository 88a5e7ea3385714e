"""The guard list of slurm.conf keys: what may be set, what is refused and why, and that nothing else gets through."""

import itertools
import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jsonschema
import pytest
from gpuaas_sdk import Work
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.outcomes import translate_errors
from gpuaas_sdk.host_steps.validate import BadWord
from gpuaas_slurm import manifest, settings
from gpuaas_slurm.errors import NOTHING_CHANGED
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import make
from gpuaas_slurm.reconcile.context import Tools
from gpuaas_slurm.render import check, cluster_files
from gpuaas_slurm.steps import candidate, catalog, proof

from apps.slurm.tests.support.slurm_examples import INSTANCE, PROJECT, member

MANIFEST = manifest.load()
FORM = jsonschema.Draft202012Validator(MANIFEST["inputs_schema"])
PATH = Path(manifest.__file__).with_name("manifest.json")
MARK = "evil"
BAD = [
    f"a\n{MARK}=1", f"a\r{MARK}", f'a"{MARK}', f"a'{MARK}", f"a;{MARK}", f"a$({MARK})", f"a`{MARK}`", f"a={MARK}", f"a {MARK}",
    f"a\t{MARK}", f"a|{MARK}", f"a&{MARK}", f"a>{MARK}", f"a#{MARK}", f"a\\{MARK}", f"../{MARK}", f"-{MARK}", f"é{MARK}", f"a\u2028{MARK}",
    f"a\x00{MARK}", f"a,{MARK}=1", MARK * 300, [MARK], {MARK: MARK},
]  # fmt: skip
ODD = ["", 7.5, True, None, [], {}, [[]], -1, 0, 10**12]
# Every place in the inputs where a person can write something, as a function from a value to inputs.
PLACES: dict[str, Any] = {
    "cluster_name": lambda bad: {"cluster_name": bad},
    "partition": lambda bad: {"partition": bad},
    "default_time_limit_minutes": lambda bad: {"default_time_limit_minutes": bad},
    "max_time_limit_minutes": lambda bad: {"max_time_limit_minutes": bad},
    "gpu_type": lambda bad: {"gpu_type": bad},
    "gpu_types": lambda bad: {"gpu_types": bad},
    "gpu_types.type": lambda bad: {"gpu_types": [{"model": "H100", "type": bad}]},
    "gpu_types.key": lambda bad: {"gpu_types": [{"model": "H100", "type": "h100", str(bad): "x"}]},
    "partitions": lambda bad: {"partitions": bad},
    "partitions.name": lambda bad: {"partitions": [{"name": bad}]},
    "partitions.gpu_type": lambda bad: {"partitions": [{"name": "fast", "gpu_type": bad}]},
    "partitions.default": lambda bad: {"partitions": [{"name": "fast", "default_time_limit_minutes": bad}]},
    "partitions.max": lambda bad: {"partitions": [{"name": "fast", "max_time_limit_minutes": bad}]},
    "partitions.tier": lambda bad: {"partitions": [{"name": "fast", "priority_tier": bad}]},
    "partitions.key": lambda bad: {"partitions": [{"name": "fast", str(bad): "x"}]},
    "slurm_conf": lambda bad: {"slurm_conf": bad},
    "slurm_conf.key": lambda bad: {"slurm_conf": {str(bad): 1}},
    **{f"slurm_conf.{name}": lambda bad, name=name: {"slurm_conf": {name: bad}} for name in settings.ALLOWED},
}


def planned(inputs: dict[str, Any]) -> Any:
    return make(INSTANCE, "training", inputs, [member("controller", 1), member("worker", 2)], PROJECT, "team-a")


def facts(**more: Any) -> dict[str, HostFacts]:
    return {"alloc_00000001": HostFacts(hostname="gpu1", gpus=("/dev/nvidia0", "/dev/nvidia1"), **more)}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_that_could_leave_its_line_becomes_a_plan(place: str) -> None:
    for bad in BAD:
        with pytest.raises(BadWord):
            planned(PLACES[place](bad))


@pytest.mark.parametrize("place", PLACES)
def test_a_value_of_another_kind_is_refused_or_left_out_and_never_breaks_the_file(place: str) -> None:
    for odd in ODD:
        try:
            made = planned(PLACES[place](odd))
        except BadWord:
            continue
        check.slurm_conf(cluster_files(made, "alloc_00000001", facts())[0].text)


@pytest.mark.parametrize("place", PLACES)
def test_the_platform_refuses_it_already(place: str) -> None:
    for bad in BAD:
        assert list(FORM.iter_errors(PLACES[place](bad))), (place, bad)


def test_words_that_are_only_compared_reach_no_file_and_no_script() -> None:
    for bad in [bad for bad in BAD if isinstance(bad, str) and 0 < len(bad) <= 80]:
        made = planned({"gpu_types": [{"model": bad, "type": "h100"}]})
        texts = [file.text for file in cluster_files(made, "alloc_00000001", facts())]
        host = catalog.example_host()
        conf = next(f for f in cluster_files(made, "alloc_00000001", facts()) if f.path == "/etc/slurm/slurm.conf")
        stages = candidate.stages(made, {"alloc_00000001": host}, facts(), conf)
        texts += [task.step.script() for stage in stages for task in stage]
        assert not [text for text in texts if MARK in text]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Prolog", "run programs as root"), ("prolog", "run programs as root"), ("NodeName", "itself"), ("ClusterName", "itself"),
        ("Nonsense", "not on this app's list"), ("KILLWAIT", "not on this app's list"), ("a;b", "not on this app's list"),
    ],
)  # fmt: skip
def test_a_refused_key_says_why(name: str, why: str) -> None:
    with pytest.raises(BadWord, match=why):
        settings.read({name: 1})
    messages = [e.schema.get("x-message", "") for e in FORM.iter_errors({"slurm_conf": {name: 1}})]
    assert len(messages) == 1
    assert why in messages[0] or name == "prolog"  # the form knows names as they are written in slurm.conf(5)


def test_no_key_is_both_allowed_and_ours() -> None:
    lists = [settings.ALLOWED, settings.MANAGED, settings.DANGEROUS, ("",)]
    for one, other in itertools.combinations([{name.lower() for name in names} for names in lists], 2):
        assert not one & other
    assert check.KNOWN - set(settings.ALLOWED) <= set(settings.MANAGED), "what we write is refused as ours"


def test_the_manifest_has_the_form_and_the_effects_of_the_table() -> None:
    if os.environ.get("GOLDEN_UPDATE"):
        MANIFEST["inputs_schema"]["properties"]["slurm_conf"] = settings.schema()
        kept = {k: v for k, v in MANIFEST["input_effects"].items() if not k.startswith("/slurm_conf/")}
        MANIFEST["input_effects"] = kept | settings.effects()
        PATH.write_text(json.dumps(MANIFEST, indent=2) + "\n")
    again = "the table changed; run with GOLDEN_UPDATE=1"
    assert MANIFEST["inputs_schema"]["properties"]["slurm_conf"] == settings.schema(), again
    declared = MANIFEST["input_effects"]
    assert {k: v for k, v in declared.items() if k.startswith("/slurm_conf/")} == settings.effects(), again
    assert {k.split("/")[1] for k in declared} == set(MANIFEST["inputs_schema"]["properties"]), (
        "each input has an effect"
    )


def test_allowed_settings_become_lines_in_the_order_of_the_table() -> None:
    inputs = {"slurm_conf": {"PriorityDecayHalfLife": "7-0", "KillWait": 60, "DebugFlags": "Backfill,Gres"}}
    assert not list(FORM.iter_errors(inputs))
    conf = cluster_files(planned(inputs), "alloc_00000001", facts())[0].text
    assert conf.endswith("\nDebugFlags=Backfill,Gres\nKillWait=60\nPriorityDecayHalfLife=7-0\n")


INPUTS = {
    "partition": "main",
    "default_time_limit_minutes": 30,
    "max_time_limit_minutes": 600,
    "partitions": [
        {"name": "fast", "max_time_limit_minutes": 10, "priority_tier": 10},
        {"name": "big", "gpu_type": "h100"},
        {"name": "main", "max_time_limit_minutes": 120},
    ],
    "gpu_type": "a100",
    "gpu_types": [{"model": "h100", "type": "h100"}],
}


def test_partitions_are_written_with_the_default_one_first() -> None:
    assert not list(FORM.iter_errors(INPUTS))
    conf = cluster_files(planned(INPUTS), "alloc_00000001", facts())[0].text
    assert [line for line in conf.splitlines() if line.startswith(("NodeSet", "Part"))] == [
        "NodeSet=gpu_h100 Feature=h100",
        "PartitionName=main Nodes=ALL Default=YES DefaultTime=30 MaxTime=120 State=UP",
        "PartitionName=fast Nodes=ALL Default=NO DefaultTime=10 MaxTime=10 PriorityTier=10 State=UP",
        "PartitionName=big Nodes=gpu_h100 Default=NO DefaultTime=30 MaxTime=600 State=UP",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"partitions": [{"name": "a"}, {"name": "a"}]},
        {"partitions": [{"name": "main", "gpu_type": "gpu"}]},
        {"partitions": [{"name": "a", "gpu_type": "v100"}]},
        {"partitions": [{"name": "a", "default_time_limit_minutes": 9, "max_time_limit_minutes": 8}]},
        {"default_time_limit_minutes": 9, "max_time_limit_minutes": 8},
        {"partitions": [{}]},
        {"partitions": [{"name": f"p{n}"} for n in range(17)]},
    ],
)
def test_partitions_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadWord):
        planned(wrong)


def test_each_gpu_is_called_after_its_model_where_the_machine_reports_one() -> None:
    gpus = [{"path": "/dev/nvidia0", "model": "NVIDIA H100 80GB"}, {"path": "/dev/nvidia1", "model": "NVIDIA A100"}]
    mixed = catalog.Member("mem_00000002", "worker", facts={"gpus": gpus})
    made = make(INSTANCE, "training", INPUTS, [member("controller", 1), mixed], PROJECT, "team-a")
    files = {f.path: f.text for f in cluster_files(made, "alloc_00000001", facts())}
    assert "Gres=gpu:h100:1,gpu:a100:1 Feature=h100,a100" in files["/etc/gpuaas-slurm/slurmd.env"]
    assert "Type=h100 Flags=nvidia_gpu_env File=/dev/nvidia0" in files["/etc/slurm/gres.conf"]
    assert "Type=a100 Flags=nvidia_gpu_env File=/dev/nvidia1" in files["/etc/slurm/gres.conf"]
    kinds = made.gpus_by_type({"alloc_00000001": ["/dev/nvidia0", "/dev/nvidia1"]})
    assert kinds == {"a100": 1, "h100": 1}
    tried = re.findall(r"--gres=gpu:(\w+):1", proof.access(made, kinds).act)
    assert tried == ["a100", "h100"], "a deploy tries the types that are there, not the one that other GPUs would have"


@pytest.mark.parametrize(
    ("options", "again"),
    [
        ("", False),
        ("""'-Z -N w --conf "RealMemory=1 Gres=gpu:a100:2"'""", False),
        ("""'-Z -N w --conf "RealMemory=999 Gres=gpu:a100:2 Feature=a100"'""", False),
        ("""'-Z -N w --conf "RealMemory=1 Gres=gpu:h100:2 Feature=h100"'""", True),
        ("""'-Z -N w --conf "RealMemory=1 Gres=gpu:a100:4"'""", True),
        ("""'-Z -N w --conf "RealMemory=1"'""", True),
    ],
)
def test_a_worker_joins_again_only_when_its_gpus_are_named_differently(options: str, again: bool) -> None:
    made = planned({"gpu_type": "a100"})
    assert bool(candidate.must_rejoin(made, facts(options=options))) is again


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("PartitionName=main Nodes=ALL", "PartitionName=main Nodes=gpu_none"),
        ("Default=YES", "Default=NO"),
        ("PartitionName=fast Nodes=ALL Default=NO", "PartitionName=main Nodes=ALL Default=NO"),
        ("PartitionName=fast Nodes=ALL Default=NO", "PartitionName=fast Nodes=ALL Default=YES"),
        ("NodeSet=gpu_h100 Feature=h100\n", ""),
    ],
)
def test_the_checker_sees_what_a_client_of_slurm_does_not(old: str, new: str) -> None:
    conf = cluster_files(planned(INPUTS), "alloc_00000001", facts())[0].text
    check.slurm_conf(conf)
    assert old in conf
    with pytest.raises(check.BadConfig):
        check.slurm_conf(conf.replace(old, new, 1))


def test_every_script_of_a_change_is_valid_shell() -> None:
    made, seen = planned(INPUTS), facts(options="""'-Z --conf "Gres=gpu:v100:2"'""")
    conf, hosts = cluster_files(made, "alloc_00000001", seen)[0], {"alloc_00000001": catalog.example_host()}
    stages = [*candidate.stages(made, hosts, seen, conf), *candidate.taken_up(made, hosts, seen)]
    steps = [task.step for stage in stages for task in stage]
    assert [step.name for step in steps] == ["candidate", "set_aside", "forget_nodes", "reread"]
    for step in steps:
        done = subprocess.run(
            ["bash", "-n"], input=step.script(), text=True, capture_output=True, timeout=10, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "undone"), [(code, True) for code in sorted(NOTHING_CHANGED)] + [("step_failed", False)]
)
async def test_a_refusal_before_anything_was_changed_says_that_nothing_was(
    code: str, undone: bool, tmp_path: Path
) -> None:
    operation = SimpleNamespace(id="op_00000001", kind="reconfigure")
    work = cast(Work, SimpleNamespace(operation=operation, members=lambda: []))

    async def refuse() -> None:
        raise StepFailed(code, "It cannot be.")

    outcome = await translate_errors(work, Tools(Journal(tmp_path / "journal.db")), refuse)
    assert (outcome.code, outcome.undone) == (code, undone)
