"""Done when 7 of issue 6: an agent finds, plans, deploys, watches and triages through `gpuaas mcp`.

A scripted client of the protocol over real pipes, a served core, and an app whose controller is scripted.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import gpuaas_sdk as sdk
import pytest
from gpuaas_sdk.controller.claim_runner import Pace
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from core.tests.support.fixtures import Store, World
from core.tests.support.served import Served, serving

pytestmark = pytest.mark.any_store

CANARY = "a-value-that-stays-secret"
GPUAAS = Path(sys.executable).parent / "gpuaas"


async def deploy(work: sdk.Work) -> sdk.Done | sdk.Failed:
    for number, step in enumerate(("Checking", "Installing", "Proving"), 1):
        await work.progress("work", number, 3, step)
    if work.instance.name == "broken":
        return sdk.Failed("disk_full", "The disk of node-1 is full.", "Free space there, then retry.", retryable=True)
    return sdk.Done(
        "It answers.", members=[sdk.MemberReport(member_id=one.id, state="ready") for one in work.members()]
    )


@contextlib.asynccontextmanager
async def controller(served: Served, world: World) -> AsyncIterator[None]:
    stop = asyncio.Event()
    async with sdk.AsyncClient(served.url, sdk.Bearer(world.controller.token), project_id=world.red) as client:
        pace = Pace(heartbeat_every_s=1, look_every_s=0.05)
        at_work = sdk.Controller(client, "echo", "journey", {"deploy": deploy}, wait_s=1, pace=pace)
        running = asyncio.create_task(at_work.run(stop))
        try:
            yield
        finally:
            stop.set()
            await running


class Agent:
    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def tools(self) -> set[str]:
        return {tool.name for tool in (await self._session.list_tools()).tools}

    async def ask(self, tool: str, *, wrong: bool = False, **arguments: Any) -> Any:
        told = await self._session.call_tool(tool, arguments)
        assert told.is_error == wrong, told.structured_content
        return told.structured_content if wrong else told.structured_content["answer"]

    async def text(self, tool: str, **arguments: Any) -> str:
        return str((await self._session.call_tool(tool, arguments)).content)

    async def deploy(self, name: str, allocation: str) -> tuple[str, Any]:
        """Plan, apply, watch to the end: the plan's id and what the operation became."""
        where = {"name": name, "app_slug": "echo", "placement_intent": {"head": [allocation]}}
        plan = await self.ask("plan", operation="deploy", arguments=where)
        assert plan["checked"] == "by the platform"
        assert [host["allocation_id"] for host in plan["effects"]["hosts"]] == [allocation]
        accepted = (await self.ask("apply", plan_id=plan["plan_id"]))["answer"]
        return plan["plan_id"], await self.watched(accepted["operation"]["id"])

    async def watched(self, operation_id: str) -> Any:
        steps, after = [], ""
        for _ in range(30):
            seen = await self.ask("watch", operation_id=operation_id, after=after, seconds=20)
            steps, after = steps + seen["steps"], seen["next_after"]
            if seen["ended"]:
                return seen["operation"] | {"messages": [step["message"] for step in steps if "message" in step]}
        raise AssertionError("the operation did not end")


@contextlib.asynccontextmanager
async def agent(served: Served, world: World, folder: Path, *words: str) -> AsyncIterator[Agent]:
    told = {"GPUAAS_API": served.url, "GPUAAS_TOKEN": str(world.boss.token), "GPUAAS_PROJECT": world.red}
    env = {**os.environ, **told, "HOME": str(folder), "GPUAAS_CONFIG": str(folder / "config.json")}
    program = StdioServerParameters(command=str(GPUAAS), args=["mcp", *words], env=env)
    with (folder / "agent.log").open("w") as log:
        async with stdio_client(program, errlog=log) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            yield Agent(session)


async def test_an_agent_finds_plans_deploys_watches_and_triages(store: Store, world: World, tmp_path: Path) -> None:
    with serving(store, tmp_path) as served:
        async with controller(served, world):
            async with agent(served, world, tmp_path, "--allow-changes") as one:
                await looks_around(one, world)
                await deploys_once(one, world)
                await finds_out_why(one, world)
                await never_meets_a_secret(one, served, world)
            async with agent(served, world, tmp_path) as one:
                await only_looks(one)


async def looks_around(one: Agent, world: World) -> None:
    assert {"find", "describe", "plan", "apply", "watch", "triage"} <= await one.tools()
    assert [entry["app"]["slug"] for entry in (await one.ask("find", what="get_catalog"))["items"]] == ["echo"]
    held = await one.ask("find", what="list_allocations")
    assert set(world.allocations[:2]) <= {allocation["id"] for allocation in held["items"]}


async def deploys_once(one: Agent, world: World) -> None:
    plan, operation = await one.deploy("train", world.allocations[0])
    assert operation["status"] == "succeeded"
    assert [said for said in operation["messages"] if said in ("Checking", "Installing", "Proving")] == [
        "Checking",
        "Installing",
        "Proving",
    ]
    again = await one.ask("apply", plan_id=plan)
    assert again["applied"].startswith("before")
    assert again["answer"]["operation"]["id"] == operation["id"]
    instances = (await one.ask("find", what="list_instances"))["items"]
    assert [(found["name"], found["state"]) for found in instances] == [("train", "running")]
    assert len((await one.ask("find", what="list_operations"))["items"]) == 1
    taken = {"name": "other", "app_slug": "echo", "placement_intent": {"head": [world.allocations[0]]}}
    refused = await one.ask("plan", operation="deploy", arguments=taken, wrong=True)
    assert refused["code"] == "allocation_in_use"
    assert refused["what_you_can_do"]
    assert refused["correlation_id"]


async def finds_out_why(one: Agent, world: World) -> None:
    _, operation = await one.deploy("broken", world.allocations[1])
    assert operation["status"] == "failed"
    found = await one.ask("triage", correlation_id=operation["correlation_id"])
    assert found["verdict"]["why"].startswith("The disk of node-1 is full.")
    assert found["verdict"]["way_out"] == "Free space there, then retry."
    assert found["verdict"]["code"] == "disk_full"


async def never_meets_a_secret(one: Agent, served: Served, world: World) -> None:
    """Everything an agent can read about a project that has a secret, and the token it works with, in one text."""
    instance = (await one.ask("find", what="list_instances"))["items"][0]
    async with sdk.AsyncClient(served.url, sdk.Bearer(world.boss.token)) as boss:
        await boss.issue_secret(world.red, instance["id"], name="db_password", value=CANARY)
    ids = {"project_id": world.red, "instance_id": instance["id"], "operation_id": instance["last_operation_id"]}
    ids |= {"tenant_id": world.tenant, "correlation_id": instance["correlation_id"], "app_slug": "echo"}
    tools, texts = {"list": "find", "read": "describe"}, []
    for known in await one.ask("operations"):
        if known["kind"] in tools and set(known["needs"]) <= set(ids):
            arguments = {name: ids[name] for name in known["needs"]}
            texts.append(await one.text(tools[known["kind"]], what=known["name"], arguments=arguments))
    assert len(texts) > 40
    assert any("db_password" in text for text in texts), "its name may be read"
    assert not [text for text in texts if CANARY in text or str(world.boss.token) in text]


async def only_looks(one: Agent) -> None:
    assert "apply" not in await one.tools()
    instance = next(i for i in (await one.ask("find", what="list_instances"))["items"] if i["name"] == "train")
    plan = await one.ask("plan", operation="stop_instance", arguments={"instance_id": instance["id"]})
    refused = await one.ask("apply", plan_id=plan["plan_id"], wrong=True)
    assert "--allow-changes" in refused["what_you_can_do"]
    after = await one.ask("describe", what="get_instance", arguments={"instance_id": instance["id"]})
    assert after["state"] == "running"
