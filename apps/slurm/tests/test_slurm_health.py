"""How a cluster is, from what was seen of it: conditions, one word, one sentence, and the drift ledger."""

import dataclasses
import subprocess
from typing import Any

import pytest
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Host, parse, preamble
from gpuaas_slurm import __version__, conditions, drift, health, plan
from gpuaas_slurm.access import headers_wanted, refreshed, shown_header
from gpuaas_slurm.facts import AskedBetween, HostFacts
from gpuaas_slurm.health import Worker
from gpuaas_slurm.probes import HEAD, WORKER, HeadSeen, HostSeen, Node, read_head, read_host
from gpuaas_slurm.profile import PROFILE
from gpuaas_slurm.reconcile import deploy
from gpuaas_slurm.steps.catalog import Member, example_host
from gpuaas_slurm.steps.proof import header, try_header

PLAN = plan.make(
    "inst_00000001",
    "train",
    {"gpu_type": "a100"},
    [
        Member("mem_00000001", "controller", 0, "alloc_00000001", "gpu1"),
        Member("mem_00000002", "worker", 0, "alloc_00000002", "gpu2", "10.88.0.12"),
        Member("mem_00000003", "worker", 1, "alloc_00000003", "gpu3", "10.88.0.13"),
    ],
    "prj_00000001",
    "team-a",
)
FIRST, SECOND = PLAN.workers
UP = dict.fromkeys(("munge", "mariadb", "slurmdbd", "slurmctld"), "active")
PART = {"PartitionName": "main", "State": "UP", "MaxTime": "INFINITE", "DefaultTime": "60"}
SEEN_PART = PART | {"MaxTime": "UNLIMITED", "DefaultTime": "01:00:00"}


def node(name: str, state: str = "idle", **more: Any) -> Node:
    facts = {"silent": False, "version": "22.05.8", "gpus": {"a100": 2}, "by": "", "since": "", "reason": ""}
    return Node(name=name, state=state, **(facts | more))


def head(**changes: Any) -> HeadSeen:
    fine: dict[str, Any] = {
        "units": UP,
        "version": "22.05.8",
        "answers": True,
        "database": True,
        "accounts": True,
        "nodes": {w.node: node(w.node) for w in PLAN.workers},
        "partitions": {"main": SEEN_PART},
        "wanted": {"main": PART},
        "files_known": True,
        "made": {("root", ""): "", ("root", "root"): "", ("team-a", ""): "Fairshare=1", ("team-a", "gpuaas"): ""},
        "associations": (("root", "", ""), ("root", "root", ""), ("team-a", "", ""), ("team-a", "gpuaas", "")),
    }
    return HeadSeen(**(fine | changes))


def workers(seen: HeadSeen, first: dict[str, Any] | None = None) -> list[Worker]:
    fine = HostSeen(units={"slurmd": "active"})
    made = [Worker("train", w, "ready", seen.nodes.get(w.node), fine) for w in PLAN.workers]
    return [dataclasses.replace(made[0], **(first or {})), *made[1:]]


def judged(seen: HeadSeen, **first: Any) -> health.Health:
    return health.judge("train", PLAN, seen, workers(seen, first))


def drained(by: str = "root", reason: str = "fan is loud", state: str = "drained") -> Node:
    return node(FIRST.node, state, by=by, since="2026-11-16T08:00:00", reason=reason)


def test_a_whole_cluster_is_healthy_in_the_same_words_every_time() -> None:
    found = judged(head())
    assert (found.status, found.sentence) == ("healthy", "2 of 2 workers take jobs.")
    assert [row.key for row in found.conditions] == ["scheduler", "worker", "accounting", "configuration", "clock"]
    assert {row.row()["status"] for row in found.conditions} == {"True"}
    busy = head(nodes={w.node: node(w.node, "busy") for w in PLAN.workers}, skew_s=1.7)
    assert judged(busy) == found, "jobs that come and go are no news"


@pytest.mark.parametrize(
    ("seen", "status", "key", "words"),
    [
        (head(answers=False, units=UP | {"slurmctld": "inactive"}), "failed", "scheduler", "systemctl start slurmctld"),
        (head(answers=False, units=UP | {"slurmctld": "activating"}), "progressing", "scheduler", "is starting"),
        (head(answers=False), "failed", "scheduler", "does not answer"),
        (head(accounts=False, units=UP | {"slurmdbd": "inactive"}), "degraded", "accounting", "start slurmdbd"),
        (head(accounts=False, database=False, units=UP | {"mariadb": "failed"}), "degraded", "accounting", "start mariadb"),
        (head(files=(("changed", "/etc/slurm/slurm.conf", ""),)), "degraded", "configuration", "gpuaas instance update"),
        (head(skew_s=601), "degraded", "clock", "about 10 min ahead"),
    ],
)  # fmt: skip
def test_what_is_wrong_on_the_controllers_host_is_named_with_what_to_do(
    seen: HeadSeen, status: str, key: str, words: str
) -> None:
    found = judged(seen)
    (wrong,) = [row for row in found.conditions if row.ok is False]
    assert (found.status, wrong.key, found.sentence) == (status, key, wrong.sentence)
    assert words in found.sentence


def test_a_host_that_does_not_answer_is_never_reported_healthy() -> None:
    found = judged(HeadSeen(why="10.88.0.11 port 22 cannot be reached"))
    assert found.status == "unknown"
    assert {row.row()["status"] for row in found.conditions} == {"Unknown"}


@pytest.mark.parametrize(
    ("first", "status", "words"),
    [
        ({"host": HostSeen(units={"slurmd": "failed"})}, "degraded", "slurmd on gpu2 is failed"),
        ({"host": HostSeen(why="no answer"), "missed": 2}, "degraded", "gpu2 does not answer: it is off"),
        ({"node": node(FIRST.node, "down"), "host": HostSeen(why="no answer"), "missed": 1}, "degraded", "it is off"),
        ({"node": node(FIRST.node, silent=True), "silent": 2}, "degraded", "gpu2 is silent in Slurm"),
        ({"node": None}, "degraded", "Slurm does not know gpu2"),
        ({"node": drained()}, "degraded", "drained by root since 2026-11-16T08:00:00: fan is loud. That is left alone"),
        ({"node": drained("slurm", "gres/gpu count")}, "degraded", "Slurm itself drained gpu2"),
        ({"node": drained(reason="gpuaas:op_1: x")}, "degraded", "kept a drain of the platform"),
    ],
)
def test_a_worker_in_trouble_is_named_with_what_to_do(first: dict[str, Any], status: str, words: str) -> None:
    found = judged(head(), **first)
    assert (found.status, words in found.sentence) == (status, True), found.sentence
    assert found.sentence.startswith("1 of 2 workers take jobs.")


def test_limits_that_the_platform_itself_set_are_no_drift() -> None:
    limited = head(associations=(("team-a", "", "grpjobs=3"), ("team-a", "gpuaas", "")))
    own = dataclasses.replace(limited, made=limited.made | {("team-a", ""): "Fairshare=1:GrpJobs=3"})
    assert ledger(own) == []


def test_files_without_a_recorded_digest_are_not_called_right() -> None:
    found = judged(head(files_known=False))
    assert (found.status, [row.key for row in found.conditions if row.ok is None]) == ("healthy", ["configuration"])


def test_a_host_that_was_not_heard_once_may_only_be_slow() -> None:
    assert judged(head(), host=HostSeen(why="no answer"), missed=1).status == "healthy"
    assert judged(head(), node=node(FIRST.node, silent=True), silent=1).status == "healthy"


def test_a_drain_that_was_asked_for_is_no_trouble() -> None:
    mine = drained(reason="gpuaas:op_1: a new disk")
    found = judged(head(), node=mine, member_state="drained")
    assert (found.status, found.sentence) == ("healthy", "1 of 2 workers take jobs. Drained, as asked: gpu2.")
    adopted = judged(head(), node=drained(), member_state="drained")
    assert adopted.status == "healthy", "a person's drain that the platform has adopted"


def test_a_cluster_without_a_worker_that_takes_jobs_is_drained_or_failed() -> None:
    away = head(nodes={w.node: dataclasses.replace(drained(), name=w.node) for w in PLAN.workers})
    assert judged(away).status == "drained"
    down = head(nodes={w.node: node(w.node, "down") for w in PLAN.workers})
    assert judged(down).status == "failed"


def ledger(seen: HeadSeen, app_version: str = __version__, **first: Any) -> list[dict[str, Any]]:
    return drift.ledger("train", PLAN, seen, workers(seen, first), app_version)


def test_a_cluster_as_the_platform_made_it_has_an_empty_ledger() -> None:
    assert ledger(head()) == []


@pytest.mark.parametrize(
    ("seen", "first", "kind", "output"),
    [
        (head(files=(("changed", "/etc/slurm/slurm.conf", "2026-11-16 08:00"),)), {}, "person", "changed by hand"),
        (head(files=(("lost", "/etc/slurm/gres.conf", ""),)), {}, "lost", "The file is missing."),
        (head(), {"node": drained()}, "person", "Drained by root since 2026-11-16T08:00:00: fan is loud."),
        (head(), {"node": drained("slurm", "low memory")}, "slurm", "Drained by Slurm"),
        (head(), {"node": None}, "lost", "no such node"),
        (head(nodes=head().nodes | {"stray": node("stray")}), {}, "person", "not a member"),
        (head(partitions={"main": SEEN_PART, "own": SEEN_PART}), {}, "person", "slurm.conf does not have"),
        (head(partitions={}), {}, "lost", "does not have the partition"),
        (head(partitions={"main": SEEN_PART | {"State": "DOWN"}}), {}, "person", "State is DOWN; slurm.conf says UP."),
        (head(partitions={"main": SEEN_PART | {"MaxTime": "1-00:00:00"}}), {}, "person", "MaxTime is 1-00:00:00"),
        (head(associations=(*head().associations, ("team-a", "eve", ""))), {}, "person", "eve was added"),
        (head(associations=(*head().associations, ("physics", "", ""))), {}, "person", "account physics was added"),
        (head(associations=(("team-a", "", "grpjobs=3"), ("team-a", "gpuaas", ""))), {}, "person", "grpjobs=3"),
        (head(associations=(("root", "", ""),)), {}, "lost", "no longer in the account"),
    ],
)
def test_a_change_by_hand_is_listed_with_a_way_back(
    seen: HeadSeen, first: dict[str, Any], kind: str, output: str
) -> None:
    (entry,) = ledger(seen, **first)
    assert (entry["kind"], output in entry["said"]) == (kind, True), entry
    assert entry.get("revert") or entry.get("adopt")


def test_an_older_version_of_the_files_is_a_change_that_waits() -> None:
    (entry,) = ledger(head(), app_version="0.0.9")
    assert (entry["kind"], "0.0.9" in entry["said"]) == ("pending", True)


def test_what_hosts_say_is_read() -> None:
    output = [
        "@now_ms 5000", "@version slurm-wlm 22.05.8", "@unit slurmctld.service|active", "@files listed",
        "@file changed|/etc/slurm/slurm.conf|2026-11-16 08:00", "@ping Slurmctld(primary) at gpu1 is UP",
        "@node worker0-a|drain*|22.05.8|gpu:a100:2(S:0),gpu:h100:1(S:1)|root|2026-11-16T08:00:00|fan|loud",
        "@node worker1-b|mix|22.05.8|(null)|Unknown|Unknown|none", "@node ", "@database answers", "@accounts answer",
        "@partition PartitionName=main State=UP", "@wanted PartitionName=main Nodes=ALL State=UP",
        "@assoc team-a|gpuaas|3|||||", "@assoc root||||||", "@made Parent - 'root'", "@made Account - 'team-a':GrpJobs=3",
        "@made Parent - 'team-a'", "@made User - 'gpuaas':DefaultAccount='team-a'",
    ]  # fmt: skip
    seen = read_head(parse(0, "\n".join(output)), AskedBetween(500, 1000))
    assert (seen.skew_s, seen.version, seen.answers, seen.database, seen.accounts) == (4.0, "22.05.8", True, True, True)
    assert seen.files == (("changed", "/etc/slurm/slurm.conf", "2026-11-16 08:00"),)
    first, second = seen.nodes.values()
    assert (first.state, first.silent, first.gpus, first.by, first.reason) == (
        "drained",
        True,
        {"a100": 2, "h100": 1},
        "root",
        "fan|loud",
    )
    assert (second.state, second.silent, second.gpus, second.by, second.reason) == ("busy", False, {}, "", "")
    assert seen.associations == (("team-a", "gpuaas", "grpjobs=3"), ("root", "", ""))
    assert seen.made == {("root", ""): "", ("team-a", ""): "GrpJobs=3", ("team-a", "gpuaas"): "DefaultAccount='team-a'"}
    assert read_host(parse(0, "@unit slurmd.service|failed"), AskedBetween(0, 0)).runs("slurmd") is False


@pytest.mark.parametrize("script", [HEAD, WORKER, try_header(PLAN, "main", "a100")], ids=["head", "worker", "header"])
def test_a_look_is_valid_shell_and_takes_no_charge_of_the_host(script: str) -> None:
    text = preamble(PROFILE, example_host().claim, step="look", unit="", within=1) + script
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, timeout=10, check=False)
    assert done.returncode == 0, done.stderr
    assert not any(word in script for word in ("fence", "journal", "systemctl start", "scontrol update"))


BUNDLE: dict[str, Any] = {
    "cluster": "train",
    "workers": 1,
    "nodes": [FIRST.node],
    "gpus": {"count": 2, "types": {"a100": 2}},
    "sbatch_headers": [shown_header(PLAN, ("main", None)), shown_header(PLAN, ("gone", None))],
    "versions": {"app": "0", "slurmctld": "slurm-wlm 22.05.8"},
}


def fresh(before: dict[str, Any], seen: HeadSeen, tried: dict[Any, bool]) -> dict[str, Any]:
    wanted = headers_wanted(seen)
    return refreshed(before, PLAN, seen, workers(seen), wanted, tried, app_version="1.0")


def test_the_bundle_counts_who_came_later_and_shows_headers_that_were_tried() -> None:
    made = fresh(BUNDLE, head(), {("main", "a100"): True})
    assert (made["workers"], made["gpus"]) == (2, {"count": 4, "types": {"a100": 4}})
    assert made["nodes"] == [FIRST.node, SECOND.node]
    assert [(one["partition"], one["gpu"]) for one in made["sbatch_headers"]] == [("main", None), ("main", "a100")]
    assert made["versions"]["members"] == {"gpu1": "22.05.8", "gpu2": "22.05.8", "gpu3": "22.05.8"}
    assert fresh(made, head(), {}) == made, "the same sight, the same bundle"
    assert fresh(BUNDLE, head(), {("main", "a100"): False})["sbatch_headers"] == [shown_header(PLAN, ("main", None))]


def test_gpus_of_several_types_are_told_by_type_with_a_header_for_each() -> None:
    both = head(nodes={FIRST.node: node(FIRST.node), SECOND.node: node(SECOND.node, gpus={"h100": 1, "a100": 1})})
    made = fresh(BUNDLE, both, {("main", "a100"): True, ("main", "h100"): True})
    assert made["gpus"] == {"count": 4, "types": {"a100": 3, "h100": 1}}
    assert [one["gpu"] for one in made["sbatch_headers"]] == [None, "a100", "h100"]


def test_parts_that_cannot_be_tried_now_are_marked_until_they_can() -> None:
    made = fresh(BUNDLE, head(), {("main", "a100"): True})
    stale = fresh(made, head(answers=False), {})
    assert "commands" in stale["stale"]
    assert {name: value for name, value in stale.items() if name != "stale"} == made
    assert fresh(stale, head(), {}) == made


def test_a_header_is_what_a_script_begins_with() -> None:
    assert header(PLAN, "main", "a100") == (
        "#SBATCH --account=team-a\n#SBATCH --partition=main\n#SBATCH --time=60\n#SBATCH --gres=gpu:a100:1\n"
    )


def test_a_partition_with_a_wild_name_gets_no_header() -> None:
    wild = head(partitions={"main": SEEN_PART, "$(reboot)": SEEN_PART})
    assert {key[0] for key in headers_wanted(wild)} == {"main"}


class Asked:
    """The part of Work that a preflight needs."""

    def __init__(self) -> None:
        self.reported: list[dict[str, Any]] = []

    def members(self) -> list[Any]:
        return []

    async def progress(self, phase: str, step: int, of: int, message: str, *, adapter_detail: dict[str, Any]) -> None:
        self.reported.append(adapter_detail)


async def check(facts: dict[str, HostFacts], **more: Any) -> Asked:
    work = Asked()
    hosts = {
        a: Host(example_host().machine, example_host().claim, a, f.hostname, "10.0.0.1", PROFILE)
        for a, f in facts.items()
    }
    try:
        await deploy.check_hosts(work, hosts, facts, **more)  # type: ignore[arg-type]
    except StepFailed as error:
        work.reported.append({"error": error})
    return work


async def test_every_host_answers_every_question_and_all_that_is_wrong_is_told_at_once(facts: HostFacts) -> None:
    other = dataclasses.replace(facts, hostname="gpu2", ports={6818: "nc"}, skew_s=600.0)
    third = dataclasses.replace(facts, hostname="gpu3", missing=("srun",), cgroup="sysfs", taken_uids=frozenset())
    matrix, ended = (await check({"a": facts, "b": other, "c": third})).reported
    rows = {host["host"]: {row["check"]: row["ok"] for row in host["checks"]} for host in matrix["preflight"]}
    assert all(rows["gpu1"].values())
    assert [name for name, ok in rows["gpu2"].items() if not ok] == ["clock_right", "ports_free"]
    assert [name for name, ok in rows["gpu3"].items() if not ok] == ["packages_present", "cgroup_there"]
    assert {"name_alone", "uid_agrees", "gpus_present", "disk_free", "no_other_cluster"} <= rows["gpu1"].keys()
    error = ended["error"]
    assert error.code == "clock_wrong"
    for words in ("gpu2 is 600 s ahead", "Port 6818 of gpu2", "gpu3 lacks the package", "cgroup of gpu3"):
        assert words in error.message
    assert error.detail["preflight"] == matrix["preflight"]


async def test_packages_that_can_still_be_brought_end_nothing_yet(facts: HostFacts) -> None:
    lacking = dataclasses.replace(facts, missing=("srun",))
    (matrix,) = (await check({"a": lacking}, later=frozenset(["packages_present"]))).reported
    assert [row["check"] for row in matrix["preflight"][0]["checks"] if not row["ok"]] == ["packages_present"]
    assert len((await check({"a": lacking})).reported) == 2
    both = dataclasses.replace(lacking, skew_s=600.0)
    (_, ended) = (await check({"a": both}, later=frozenset(["packages_present"]))).reported
    assert ended["error"].code == "clock_wrong"


async def test_two_hosts_of_one_name_are_refused(facts: HostFacts) -> None:
    (_, ended) = (await check({"a": facts, "b": facts})).reported
    assert ended["error"].message == "More than one of the hosts is called gpu1; rename one."


def test_questions_are_named_by_what_they_ask(facts: HostFacts) -> None:
    names = [str(row["check"]) for row in conditions.ask(facts, "inst_00000001")]
    assert len(names) == len(set(names))
