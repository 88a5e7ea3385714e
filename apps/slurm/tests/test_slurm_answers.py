"""What hosts say is read rightly: facts, preflight questions, failures, proofs, evidence."""

import dataclasses

import pytest
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import parse
from gpuaas_slurm import conditions
from gpuaas_slurm.access import Proof
from gpuaas_slurm.errors import FAILURES, WAYS_OUT
from gpuaas_slurm.facts import AskedBetween, HostFacts, read
from gpuaas_slurm.reconcile.decommission import checks
from gpuaas_slurm.slurm import parse as slurm

MINE = "inst_00000001"


def first_no(facts: HostFacts) -> tuple[str, str] | None:
    bad = [row for row in conditions.ask(facts, MINE) if not row["ok"]]
    return (str(bad[0]["code"]), str(bad[0]["sentence"])) if bad else None


def test_marked_lines_are_kept_apart_from_plain_output() -> None:
    answer = parse(0, "hello\n@done files\n@done mpi\n@ x\n", "oops\n")
    assert answer.lines == {"done": ["files", "mpi"]}
    assert answer.text == "hello\n@ x\noops"


def test_facts_are_read_from_one_answer() -> None:
    output = "\n".join(
        ["@hostname gpu1", "@now_ms 5000", "@virt systemd-nspawn", "@cpus 8", "@memory_mb 16000", "@gpu /dev/nvidia10", "@gpu /dev/nvidia2",
         "@disk /|5000", "@port 6817|users:((x))", "@unit munge.service|active", "@missing srun", "@conf ", "@owner inst_00000001"]
    )  # fmt: skip
    facts = read(parse(0, output), AskedBetween(500, 1000))
    assert facts.gpus == ("/dev/nvidia2", "/dev/nvidia10")
    assert (facts.skew_s, facts.disk_kb, facts.units, facts.conf_instance) == (
        4.0,
        {"/": 5000},
        {"munge": "active"},
        "",
    )


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"virt": "systemd-nspawn", "freezer": True}, "linuxproc"),
        (
            {"virt": "none", "cgroup": "cgroup2fs", "controllers": ("cpuset", "cpu", "memory"), "dbus": True},
            "cgroup/v2",
        ),
        ({"virt": "none", "cgroup": "cgroup2fs", "controllers": ("cpu",), "dbus": True}, "linuxproc"),
        ({"virt": "none", "cgroup": "tmpfs", "freezer": True}, "cgroup/v1"),
        ({"virt": "none", "cgroup": "tmpfs"}, "linuxproc"),
    ],
)
def test_control_groups_are_used_where_the_host_allows(change: dict, kind: str) -> None:
    assert HostFacts(hostname="gpu1", **change).confinement == kind


def test_a_good_host_passes(facts: HostFacts) -> None:
    assert first_no(facts) is None


def test_a_missing_package_is_named_with_its_cure(facts: HostFacts) -> None:
    code, sentence = first_no(dataclasses.replace(facts, missing=("slurmdbd", "srun"))) or ("", "")
    assert code == "package_missing"
    assert "apt-get install --no-install-recommends slurm-client slurmdbd" in sentence


def test_a_full_disk_is_named(facts: HostFacts) -> None:
    full = dataclasses.replace(facts, disk_kb={"/": 9_000_000, "/var/lib": 1000})
    assert first_no(full) == ("disk_full", "The file system /var/lib of gpu1 has 0 MB free; the cluster needs 256 MB.")


def test_a_small_file_system_that_holds_nothing_of_ours_does_not_matter(facts: HostFacts) -> None:
    assert first_no(dataclasses.replace(facts, disk_kb={"/": 9_000_000, "/etc": 5000})) is None


def test_a_wrong_clock_is_told_with_its_direction(facts: HostFacts) -> None:
    code, sentence = first_no(dataclasses.replace(facts, skew_s=-600)) or ("", "")
    assert (code, "600 s behind" in sentence) == ("clock_wrong", True)


def test_another_cluster_on_the_host_is_left_alone(facts: HostFacts) -> None:
    stranger = dataclasses.replace(facts, conf_instance="", conf_cluster="physics")
    assert first_no(stranger) == (
        "preflight_failed",
        "gpu1 already has a Slurm configuration (of cluster physics, not made by GPUaaS).",
    )
    assert (first_no(dataclasses.replace(facts, conf_instance="inst_00000009")) or ("",))[0] == "preflight_failed"
    assert (first_no(dataclasses.replace(facts, owners=("inst_00000009",))) or ("",))[0] == "preflight_failed"
    assert (first_no(dataclasses.replace(facts, schema=True)) or ("",))[0] == "preflight_failed"


def test_a_gpu_that_the_platform_knows_but_the_host_lacks_stops_the_deploy(facts: HostFacts) -> None:
    code, sentence = first_no(dataclasses.replace(facts, declared_gpus=("/dev/nvidia0", "/dev/nvidia7"))) or ("", "")
    assert (code, "/dev/nvidia7" in sentence) == ("preflight_failed", True)


def test_a_port_of_our_own_daemon_is_not_taken(facts: HostFacts) -> None:
    ours = dataclasses.replace(
        facts, ports={6817: "x"}, owners=(MINE,), conf_instance=MINE, units={"slurmctld": "active"}
    )
    assert first_no(ours) is None
    assert (first_no(dataclasses.replace(facts, ports={6817: "nc"})) or ("",))[0] == "port_in_use"


def failed(stdout: str, code: str = "step_failed") -> StepFailed:
    return FAILURES.explain(parse(1, stdout), host="gpu1", step="database", title="Starting the database", code=code)


def test_a_failure_keeps_the_last_words_of_the_service() -> None:
    error = failed("@log mariadbd: something broke\n")
    assert (error.code, error.detail["log"]) == ("step_failed", ["mariadbd: something broke"])
    assert "something broke" in error.message


@pytest.mark.parametrize(
    "output",
    [
        "@full /var/lib/mysql|0",
        "tar: x: Cannot write: No space left on device",
        "@log InnoDB: Error number 28 means 'No space left on device'",
    ],
)
def test_a_full_disk_is_recognised_behind_any_failure(output: str) -> None:
    error = failed(output, "accounting_not_ready")
    assert error.code == "disk_full"
    assert "of gpu1 is full" in error.message


@pytest.mark.parametrize(
    ("output", "code", "word"),
    [
        ("error: Munge decode failed: Rewound credential", "clock_wrong", "clocks of gpu2"),
        ("error: Munge decode failed: Expired credential\nslurm: error: Protocol authentication error", "clock_wrong", "clock"),
        ("error: Munge decode failed: Invalid credential", "keys_differ", "different munge key"),
        ("slurm_load_node: Protocol authentication error", "keys_differ", "different munge key"),
        ("slurm_load_partitions: Zero Bytes were transmitted or received", "keys_differ", "reject each other"),
        ("inval gres/gpu count reported lower than configured (1 < 2)", "gpus_missing", "fewer GPUs"),
        ("error: mysql_real_connect failed: 2002 Can't connect to local server through socket", "accounting_not_ready", "MariaDB"),
    ],
)  # fmt: skip
def test_what_slurm_and_munge_mean_is_said_in_words(output: str, code: str, word: str) -> None:
    failed = FAILURES.explain(parse(1, "", output), host="gpu2", step="worker", title="Starting", code="step_failed")
    assert failed.code == code
    assert word in failed.message
    assert output in failed.detail["output"], "the engineer still gets the words as they were"


def test_the_sentence_has_the_services_own_words_and_not_those_around_them() -> None:
    log = [
        "Starting slurmdbd.service - Slurm DBD…",
        "my last words",
        "slurmdbd.service: Failed with result 'exit-code'.",
    ]
    error = failed("".join(f"@log {line}\n" for line in [*log, "Stopped slurmdbd.service - Slurm DBD…"]))
    assert error.message.endswith("failed: my last words")
    assert "Started x" in failed("@log Started x\n").message, "better than nothing"


def test_a_script_can_name_its_own_failure() -> None:
    assert (failed("@fail port_in_use|Port 6817 is taken.").code, failed("@fail nonsense|x").code) == (
        "port_in_use",
        "step_failed",
    )


@pytest.mark.parametrize("code", WAYS_OUT)
def test_every_failure_tells_a_person_what_to_do(code: str) -> None:
    way_out = FAILURES.way_out(code, "op_1")
    assert any(word in way_out for word in ("retry op_1", "Decommission", "Update the instance"))


def test_versions_and_states_of_slurm() -> None:
    assert slurm.version("slurm-wlm 22.05.8") == "22.05.8"
    assert slurm.version("nothing") is None
    assert [slurm.node_state(t) for t in ("idle", "mix", "drng", "down*", "weird")] == [
        "idle",
        "busy",
        "draining",
        "down",
        "unknown",
    ]
    assert slurm.fields("NodeName=w0 State=IDLE+DRAIN") == {"NodeName": "w0", "State": "IDLE+DRAIN"}


def test_proofs_are_read_from_the_report() -> None:
    output = ["@first_job 1700|gpu1", "@batch_job 2|COMPLETED", "@gpu_job 4|0", "@access version|slurmctld|slurm-wlm 22.05.8",
            "@access command|sinfo|0", "@access nodes|worker0-a=idle worker1-b=mix "]  # fmt: skip
    proof = Proof.read(parse(0, "\n".join(output)))
    assert (proof.first_job_at_ms, proof.batch_job, proof.gpus, proof.slurm_version) == (1700, "2", 4, "22.05.8")
    assert proof.nodes == {"worker0-a": "idle", "worker1-b": "busy"}
    assert {c["status"] for c in proof.conditions(2)} == {"True"}
    assert [c["type"] for c in proof.conditions(3) if c["status"] == "False"] == ["worker"]


def test_evidence_is_a_row_per_check() -> None:
    found = checks(parse(0, "@check ports|yes|nothing listens\n@check key|yes|gone\n"))
    assert [row["check"] for row in found["checks"]] == ["ports", "key"]


def test_a_host_that_is_not_clean_is_never_reported_as_clean() -> None:
    with pytest.raises(StepFailed, match="ports: slurmd listens"):
        checks(parse(0, "@check key|yes|gone\n@check ports|no|slurmd listens\n"))


@pytest.mark.parametrize(
    ("host_ms", "skew"),
    [(40_000, 0.0), (1_000, 0.0), (61_000, 0.0), (91_000, 30.0), (-29_000, -30.0)],
)
def test_a_command_that_waited_for_a_minute_does_not_make_the_clock_wrong(host_ms: int, skew: float) -> None:
    """The look waited for a package manager for 37 s, and the host's clock was said to be 37 s ahead."""
    assert AskedBetween(1_000, 61_000).skew_s(parse(0, f"@now_ms {host_ms}")) == skew
