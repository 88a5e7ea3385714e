"""Tasks on a real host, asked for by a real controller identity: they happen, they survive kill -9, a reboot and the sandbox."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpuaas_sdk import Client, ServiceAccount
from gpuaas_sdk.client.errors import ApiError
from gpuaas_sdk.client.models import TaskView

from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(12)]


HOST = "gpu2"
ENDED = {"succeeded", "failed", "refused", "interrupted", "expired", "canceled"}
WORKLOAD = "[Service]\nExecStart=/usr/bin/sleep 100000\n"
SLOW = "[Service]\nType=oneshot\nExecStart=/usr/bin/sleep 30\n"
BIG = "/opt/gpuaas/tasks-test/big"
AGENT = "gpuaas-agent"


class Controller:
    """Holds an operation of its own: the product's controller is stopped meanwhile."""

    def __init__(self, ground: Ground, client: Client, claim: Any) -> None:
        self.ground, self.client, self.claim = ground, client, claim
        self.allocation, self.here = ground.allocations[HOST], True

    def ask(self, kind: str, **arguments: Any) -> str:
        said = {"claim_epoch": self.claim.claim_epoch, "allocation_id": self.allocation}
        project, operation = self.ground.research, self.claim.operation.id
        return self.client.ask_task(project, operation, kind=kind, arguments=arguments, **said).id

    def task(self, task_id: str, wait_s: int = 0) -> TaskView:
        return self.client.get_task(self.ground.research, self.claim.operation.id, task_id, wait_s=wait_s)

    def ended(self, task_id: str, within: float = 240) -> TaskView:
        deadline = time.monotonic() + within
        while (task := self.task(task_id, wait_s=5)).state not in ENDED:
            assert time.monotonic() < deadline, (
                f"{task}\n{self.ground.on_host(HOST, 'journalctl', '-u', AGENT, '-n', '20')}"
            )
        return task

    def done(self, kind: str, **arguments: Any) -> dict[str, Any]:
        task = self.ended(self.ask(kind, **arguments))
        assert task.state == "succeeded", task
        return task.evidence

    def unit(self, name: str, text: str) -> None:
        self.done("write_file", path=f"/etc/systemd/system/{name}", content=text, mode="0644")

    def leave(self) -> None:
        """The product's controller takes over again and tears the instance down."""
        if self.here:
            self.here = False
            self.ground.start_controller()
            self.ground.gone(self.ground.instance(self.claim.instance.id))

    def begun(self, step: str) -> None:
        """On the host itself: the journal says that the step was begun."""
        journal = ["cat", "/var/lib/gpuaas-agent/tasks/journal.json"]
        wait_until(lambda: step in self.ground.lab.exec(HOST, journal).text, 120, f"{step!r} to begin")


@pytest.fixture(scope="module")
def controller(ground: Ground) -> Iterator[Controller]:
    ground.stack.folder.unwant("slurm-controller")
    wait_until(lambda: ground.stack.folder.process("slurm-controller") is None, 120, "the controller to stop")
    ground.deploy("tasks-of-a-test", HOST)
    known = ServiceAccount.load(ground.demo.identities["research"])
    here = ServiceAccount(private_jwk=known.private_jwk, project_id=known.project_id, api=ground.stack.api, id=known.id)
    with Client.for_service_account(here) as client:
        claim = client.claim(ground.research, app_slug="slurm", holder="tasks-test", wait_s=20)
        assert claim is not None
        made = Controller(ground, client, claim)
        yield made
        made.leave()


def kill_agent(ground: Ground) -> None:
    ground.on_host(HOST, "systemctl", "kill", "--signal=KILL", "--kill-who=main", AGENT)


def power_cycle(ground: Ground) -> None:
    ground.lab.poweroff(HOST)
    ground.lab.boot(HOST)


def test_a_controller_writes_a_unit_starts_it_and_it_outlives_the_agent(ground: Ground, controller: Controller) -> None:
    controller.unit("gpuaas-tasktest.service", WORKLOAD)
    started = controller.done("run_unit", unit="gpuaas-tasktest.service", action="start")
    assert started["is"]["ActiveState"] == "active"
    kill_agent(ground)
    seen = controller.done("collect_evidence", what=["units", "processes", "ports", "disk"])
    assert any("gpuaas-tasktest.service" in line for line in seen["units"])
    assert 22 in seen["ports"]
    pid = ground.on_host(HOST, "systemctl", "show", "--property=MainPID", "--value", "gpuaas-tasktest.service").strip()
    assert pid == started["is"]["MainPID"] != "0", "the workload did not survive the agent"
    controller.done("run_unit", unit="gpuaas-tasktest.service", action="stop")


def test_the_sandbox_holds_and_what_is_outside_of_it_is_refused(ground: Ground, controller: Controller) -> None:
    figure = ground.on_host(HOST, "systemd-analyze", "security", "--no-pager", AGENT).splitlines()[-1]
    assert float(figure.split(": ")[1].split()[0]) < 4, figure
    with pytest.raises(ApiError) as refused:
        controller.ask("write_file", path="/etc/cron.d/x", content="", mode="0644")
    assert refused.value.code == "task_invalid"
    with pytest.raises(ApiError) as stale:
        controller.client.ask_task(
            ground.research,
            controller.claim.operation.id,
            claim_epoch=controller.claim.claim_epoch + 1,
            allocation_id=controller.allocation,
            kind="collect_evidence",
            arguments={"what": ["disk"]},
        )
    assert stale.value.code == "stale_claim"


@pytest.mark.parametrize("how", [kill_agent, power_cycle])
def test_interrupted_in_what_is_done_once_it_says_so_with_evidence(
    ground: Ground, controller: Controller, how: Callable[[Ground], None]
) -> None:
    controller.unit("gpuaas-slowtest.service", SLOW)
    task = controller.ask("run_unit", unit="gpuaas-slowtest.service", action="start")
    controller.begun("start gpuaas-slowtest.service")
    how(ground)
    ended = controller.ended(task)
    assert (ended.state, ended.attempt) == ("interrupted", 1)
    assert [(one["step"], one["state"]) for one in ended.evidence["steps"]] == [
        ("daemon-reload", "done"),
        ("start gpuaas-slowtest.service", "begun"),
    ]


@pytest.mark.parametrize("how", [kill_agent, power_cycle])
def test_interrupted_in_what_may_be_repeated_it_is_done_again_by_itself(
    ground: Ground, controller: Controller, how: Callable[[Ground], None]
) -> None:
    ground.on_host(HOST, "sh", "-c", f"mkdir -p /opt/gpuaas/tasks-test && truncate -s 2G {BIG}")
    task = controller.ask("collect_evidence", what=["files"], files=[BIG])
    controller.begun("look at files")
    how(ground)
    ended = controller.ended(task)
    assert ended.state == "succeeded", ended
    assert ended.evidence["files"][BIG]["size"] == 2 << 30
    assert [one["state"] for one in ended.evidence["steps"]] == ["begun", "done"], "it was not interrupted at all"
    ground.on_host(HOST, "rm", "-r", "/opt/gpuaas/tasks-test")


def test_given_back_the_machine_is_wiped_of_all_that_before_it_is_free(ground: Ground, controller: Controller) -> None:
    left = ["/etc/systemd/system/gpuaas-tasktest.service", "/etc/systemd/system/gpuaas-slowtest.service"]
    ground.on_host(HOST, "ls", *left)
    ground.on_host(HOST, "systemctl", "start", "gpuaas-tasktest.service")
    controller.leave()
    boss = ground.demo.boss
    boss.release_allocation(ground.research, controller.allocation)
    wait_until(lambda: boss.get_allocation(ground.research, controller.allocation).state == "released", 120, "the wipe")
    assert boss.get_allocation(ground.research, controller.allocation).wipe == "done"
    assert ground.lab.exec(HOST, ["sh", "-c", f"ls {' '.join(left)}"]).text == ""
    assert ground.lab.exec(HOST, ["systemctl", "is-active", "gpuaas-tasktest.service"]).text.strip() == "inactive"
    listed = ground.cli_json("task", "list", HOST, "--state", "succeeded")
    assert [task["kind"] for task in listed][-1] == "wipe"
    ground.bring(HOST)
