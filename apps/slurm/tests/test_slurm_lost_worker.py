"""A worker whose host is gone: who is reported what, in which order, and what is reported of it."""

import base64
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpuaas_sdk import Done, Failed, MemberReport, Work
from gpuaas_sdk.client.errors import MachineUnreachable
from gpuaas_sdk.host_steps.host import MachineLike
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_slurm.reconcile import members
from gpuaas_slurm.reconcile.cluster import reports
from gpuaas_slurm.reconcile.context import Tools

from apps.slurm.tests.support.slurm_examples import INSTANCE, PROJECT

KEY = b"k" * 128
HEAD, DEAD, ALIVE = "alloc_00000001", "alloc_00000002", "alloc_00000003"


class Cluster:
    """Hosts that do what they are reported and remember it; those in `off` do not answer."""

    def __init__(self, state: Path, *off: str) -> None:
        self.reported: list[tuple[str, str]] = []
        self.off = off
        self.tools = Tools(Journal(state / "journal.db"), connect=self.connect, patience_s=0)

    def connect(self, work: Work, allocation_id: str) -> AbstractAsyncContextManager[MachineLike]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[MachineLike]:
            if allocation_id in self.off:
                raise MachineUnreachable("no answer in time.")
            yield cast(MachineLike, SimpleNamespace(run=lambda argv, **_: self.run(allocation_id, argv)))

        return opened()

    async def run(self, allocation_id: str, argv: list[str]) -> Any:
        found = re.search(r"^STEP=(\S+)$", argv[-1], re.MULTILINE)
        self.reported.append((allocation_id, found[1] if found else ""))
        output = f"@hostname host{allocation_id[-1]}\n@key {base64.b64encode(KEY).decode()}\n"
        return SimpleNamespace(exit=0, stdout=output, stderr="")

    def work(self, kind: str = "remove_member", **params: Any) -> Work:
        slots = [("controller", HEAD), ("worker", DEAD), ("worker", ALIVE)]
        there = [
            SimpleNamespace(
                id=f"mem_0000000{number}",
                component_key=key,
                ordinal=number,
                allocation_id=allocation,
                node_name=f"gpu{number}",
                address=f"10.88.0.1{number}",
                facts={},
                state="ready",
                runtime_state="idle",
            )
            for number, (key, allocation) in enumerate(slots, 1)
        ]
        operation = SimpleNamespace(
            id="op_00000001",
            kind=kind,
            member_id="mem_00000002",
            params=params,
            correlation_id="cor-1",
            old_member_id=None,
        )
        return cast(
            Work,
            SimpleNamespace(
                instance=SimpleNamespace(id=INSTANCE, name="training", inputs={}, members=there, project_id=PROJECT),
                operation=operation,
                claim_epoch=1,
                project_id=PROJECT,
                stopping=False,
                cancel_requested=False,
                members=lambda: there,
                progress=self._progress,
                client=SimpleNamespace(get_project=self._project),
            ),
        )

    async def _progress(self, *_: Any, **__: Any) -> None: ...

    async def _project(self, _: str) -> Any:
        return SimpleNamespace(slug="team-a")

    def acts(self) -> list[tuple[str, str]]:
        return [(where, step) for where, step in self.reported if step not in ("look", "share")]


async def test_the_others_have_a_new_key_before_the_node_is_deleted_and_the_dead_host_is_never_asked(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path, DEAD)
    done = await members.remove(cluster.work(host_is_gone=True, reason="it burned"), cluster.tools)
    assert isinstance(done, Done)
    acts = cluster.acts()
    assert acts[:3] == [(HEAD, "node_down"), (HEAD, "new_key"), (ALIVE, "bring_key")]
    assert set(acts[3:5]) == {(HEAD, "switch_key"), (ALIVE, "switch_key")}
    assert acts[-1] == (HEAD, "delete_node")
    assert DEAD not in {where for where, _ in cluster.reported}
    assert [member.state for member in done.members] == ["removed"]
    assert done.evidence
    proof = done.evidence[DEAD]
    assert (proof["cleaned"], proof["fenced"]) == (False, True)
    assert {row["check"]: row["ok"] for row in proof["checks"]} == {
        "node": True,
        "key": True,
        "other_workers": True,
        "host": False,
    }
    assert "not cleaned" in done.sentence


async def test_a_second_host_that_does_not_answer_does_not_stand_in_the_way_but_is_named(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, DEAD, ALIVE)
    done = await members.remove(cluster.work(host_is_gone=True, reason="the rack is gone"), cluster.tools)
    assert isinstance(done, Done)
    assert "gpu3 did not answer and needs a restart" in done.sentence
    assert done.adapter_detail
    assert done.adapter_detail["without_new_key"] == ["gpu3"]


async def test_the_old_one_is_fenced_before_the_new_one_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(tmp_path, DEAD)

    async def add(work: Work, tools: Tools) -> Done:
        cluster.reported.append(("new", "joins"))
        return Done("it joined", members=[MemberReport(member_id="mem_00000003", state="ready")])

    monkeypatch.setattr(members, "_add", add)
    work = cluster.work("replace_member", host_is_gone=True, reason="it burned")
    work.operation.member_id, work.operation.old_member_id = "mem_00000003", "mem_00000002"
    done = await members.replace(work, cluster.tools)
    assert isinstance(done, Done)
    assert cluster.acts()[-2:] == [(HEAD, "delete_node"), ("new", "joins")]
    assert done.evidence
    assert list(done.evidence) == [DEAD]
    assert [(one.member_id, one.state) for one in done.members] == [("mem_00000003", "ready")]


@pytest.mark.parametrize(("kind", "verb"), [("remove_member", "remove"), ("restart", "remove")])
async def test_the_error_of_a_dead_host_names_the_way_to_go_on_without_it(tmp_path: Path, kind: str, verb: str) -> None:
    cluster = Cluster(tmp_path, DEAD)
    failed = await members.remove(cluster.work(kind), cluster.tools)
    assert isinstance(failed, Failed)
    assert failed.code == "host_unreachable"
    assert f"gpuaas member {verb} … --host-is-gone" in failed.way_out


def test_work_on_the_whole_leaves_drained_and_failed_members_as_they_are(tmp_path: Path) -> None:
    work = Cluster(tmp_path).work("restart")
    for member, state in zip(work.members(), ("ready", "drained", "failed"), strict=True):
        member.state = state
    reported = reports(work, {m.id: {"mem_00000002": "drained"}.get(m.id, "running") for m in work.members()})
    assert [(one.member_id, one.state, one.runtime_state) for one in reported] == [
        ("mem_00000001", "ready", "running"),
        ("mem_00000002", "drained", "drained"),
    ]
