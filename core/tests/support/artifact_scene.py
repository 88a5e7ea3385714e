"""Short ways to push, register and deliver, for the tests of artifacts."""

import hashlib
from typing import Any

from gpuaas_core.artifacts import deliveries
from gpuaas_core.authz.context import Context
from gpuaas_core.authz.evaluate import Principal
from gpuaas_core.kit.correlation import correlate
from gpuaas_core.tenancy.reads import project_scope

from core.tests.support.fixtures import Api, World

OCTETS = {"Content-Type": "application/octet-stream"}
CONTROLLER = Principal("svc_test", "service_account", "tasks")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tenant(world: World, *more: str) -> str:
    return "/".join((f"/v1/tenants/{world.tenant}", *more))


def project(world: World, *more: str) -> str:
    return "/".join((f"/v1/projects/{world.red}", *more))


async def push(caller: Api, where: str, content: Any, sha256: str | None = None) -> Any:
    address = f"{where}/artifact-store/{sha256 or digest(content)}"
    return await caller.call("PUT", address, content=content, headers=dict(OCTETS))


async def register(
    world: World, content: bytes = b"{}", name: str = "packages", version: str = "1.0", **more: Any
) -> Any:
    """Pushed by the tenant and registered under a name."""
    pushed = await push(world.boss, tenant(world), content)
    assert pushed.status_code == 201, pushed.text
    said = {"name": name, "version": version, "sha256": digest(content)} | more
    return await world.boss.ok(tenant(world, "artifacts"), said)


def deliver(world: World, artifact_id: str, node_id: str | None = None, **more: Any) -> Any:
    """As the room that gives machines tasks does it: in a transaction of its own."""

    def create(tx: Any) -> Any:
        scope = project_scope(tx, world.red)
        now = world.platform.clock()
        ctx = Context(tx, CONTROLLER, scope, "apps.operation.work", correlate(None, None), now)
        words = {"project_id": world.red, "node_id": node_id or world.nodes[0]} | more
        made = deliveries.create(ctx, artifact_id, **words)
        ctx.flush()
        return made

    return world.platform.db.write_now(create)


def ended(world: World, task_id: str, *, received: bool = False) -> int:
    def end(tx: Any) -> int:
        scope = project_scope(tx, world.red)
        ctx = Context(tx, CONTROLLER, scope, "apps.operation.work", correlate(None, None), world.platform.clock())
        count = deliveries.end_of_task(ctx, task_id, received=received)
        ctx.flush()
        return count

    return world.platform.db.write_now(end)


def at(delivery: Any) -> str:
    return f"/v1/nodes/{delivery.node_id}/deliveries/{delivery.id}"


async def set_policy(caller: Api, where: str, rules: dict[str, Any], name: str = "house-rules") -> None:
    answer = await caller.call(
        "PUT", f"{where}/policies/{name}", headers={"If-None-Match": "*"}, json={"rules": {"artifact_sources": rules}}
    )
    assert answer.is_success, answer.text
