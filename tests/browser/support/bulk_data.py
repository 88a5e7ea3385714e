"""An instance with 200 members and 5,000 operations behind it, written into the store: running so many would take hours.

In a project of its own, so that what other tests look at stays as small as it is.
"""

import time
from pathlib import Path
from typing import Any

from gpuaas_core.capacity.tables import allocation_holds, allocations, node_contacts, nodes
from gpuaas_core.instances.tables import instances, members
from gpuaas_core.operations.tables import operations
from gpuaas_lab.stack.seed import Demo
from sqlalchemy import create_engine, event, insert

from tests.browser.support import notebooks
from tests.browser.support.browser_stack import Scene

PROJECT, NAME = "crowd", "crowd"
MEMBERS, HISTORY = 200, 5_000
_DAY_MS = 86_400_000


def crowd(made: Scene) -> str:
    """The address of its page, without the core's."""
    project_id = _project(made.demo)
    made.demo.boss.entitle(project_id, app_slug=notebooks.SLUG)
    _fill(made.stack.root / "core" / "core.db", made.demo.tenant_id, project_id)
    return f"/projects/{project_id}/instances/{_id('inst', 0)}"


def _project(demo: Demo) -> str:
    return demo.boss.create_project(demo.tenant_id, slug=PROJECT, name="A crowd").id


def _id(prefix: str, number: int) -> str:
    """Behind everything that was made before: lists are in the order of their ids."""
    return f"{prefix}_0z{number:024d}"


def _fill(database: Path, tenant_id: str, project_id: str) -> None:
    now = int(time.time() * 1000)
    rows: dict[Any, list[dict[str, Any]]] = {
        nodes: [_node(number, tenant_id, now) for number in range(MEMBERS)],
        node_contacts: [_contact(number, now) for number in range(MEMBERS)],
        allocations: [_allocation(number, project_id, now) for number in range(MEMBERS)],
        instances: [_instance(tenant_id, project_id, now)],
        members: [_member(number, now) for number in range(MEMBERS)],
        allocation_holds: [
            {"allocation_id": _id("alloc", number), "holder_kind": "instance", "holder_id": _id("inst", 0)}
            for number in range(MEMBERS)
        ],
        operations: [_operation(number, tenant_id, project_id, now) for number in range(HISTORY)],
    }
    engine = create_engine(f"sqlite:///{database}", connect_args={"timeout": 60}, hide_parameters=True)
    event.listen(engine, "connect", lambda raw, _: raw.execute("pragma foreign_keys = on"))
    with engine.begin() as tx:
        for table, made in rows.items():
            tx.execute(insert(table), made)
    engine.dispose()


def _node(number: int, tenant_id: str, now: int) -> dict[str, Any]:
    gpus = [{"path": f"/dev/nvidia{place}", "model": "H100"} for place in range(8)]
    facts = {"hostname": f"big-{number:03d}", "cpus": 64, "memory_mb": 524288, "gpus": gpus, "os": "Debian 12"}
    return {
        "id": _id("node", number),
        "tenant_id": tenant_id,
        "name": f"big-{number:03d}",
        "state": "ready",
        "standing": "ready",
        "address": f"10.30.{number // 250}.{number % 250}",
        "ssh_port": 22,
        "ssh_host_public_key": "ssh-ed25519 " + "A" * 68,
        "host_certificate": "ssh-ed25519-cert-v01@openssh.com " + "A" * 800,
        "labels": {},
        "region": "default",
        "sku": "h100-8",
        "facts": facts,
        "trust_generation": 1,
        "trust_applied": 1,
        "created_at": now,
    }


def _contact(number: int, now: int) -> dict[str, Any]:
    """It does not become silent during the tests."""
    return {"node_id": _id("node", number), "last_seen_at": now, "due_at": now + _DAY_MS}


def _allocation(number: int, project_id: str, now: int) -> dict[str, Any]:
    return {
        "id": _id("alloc", number),
        "project_id": project_id,
        "owner_kind": "project",
        "owner_id": project_id,
        "node_id": _id("node", number),
        "name": f"big-{number:03d}",
        "state": "active",
        "integration_metadata": {},
        "trust_generation": 1,
        "gpus": 8,
        "created_at": now,
        "updated_at": now,
    }


def _instance(tenant_id: str, project_id: str, now: int) -> dict[str, Any]:
    everybody = [_id("alloc", number) for number in range(MEMBERS)]
    return {
        "id": _id("inst", 0),
        "project_id": project_id,
        "tenant_id": tenant_id,
        "name": NAME,
        "app_slug": notebooks.SLUG,
        "version": notebooks.VERSION,
        "topology": "apart",
        "state": "running",
        "health_status": "healthy",
        "health_sentence": "The hub answers, and 199 runners are ready.",
        "conditions": [],
        "generation": 1,
        "observed_generation": 1,
        "inputs": {"greeting": "Hello, everybody"},
        "placement_intent": {"hub": everybody[:1], "runner": everybody[1:]},
        "operating_mode": "tenant_dedicated",
        "control_plane_scope": "project",
        "runtime_backend": "bare_metal",
        "tenant_boundary_mode": "tenant_isolated",
        "runtime_version": "4.1",
        "access": {"address": "https://crowd.notebooks.example"},
        "last_operation_id": _id("op", HISTORY - 1),
        "correlation_id": "cor-crowd",
        "created_by": "a-person",
        "created_at": now - _DAY_MS,
        "updated_at": now,
    }


def _member(number: int, now: int) -> dict[str, Any]:
    return {
        "id": _id("mem", number),
        "instance_id": _id("inst", 0),
        "component_key": "runner" if number else "hub",
        "ordinal": max(0, number - 1),
        "state": "drained" if number % 40 == 39 else "ready",
        "allocation_id": _id("alloc", number),
        "node_id": _id("node", number),
        "runtime_state": "idle",
        "runtime_version": "4.1",
        "adapter_detail": {"slots": 8, "used": number % 8},
        "correlation_id": "cor-crowd",
        "created_at": now - _DAY_MS,
        "updated_at": now,
    }


def _operation(number: int, tenant_id: str, project_id: str, now: int) -> dict[str, Any]:
    began = now - _DAY_MS + number * 10_000
    failed = number % 100 == 50
    error = {
        "code": "image_not_there",
        "message": f"The image could not be fetched, for the {number}th time.",
        "way_out": "Look whether the mirror is up, then retry.",
        "retryable": True,
    }
    return {
        "id": _id("op", number),
        "target_kind": "instance",
        "target_id": _id("inst", 0),
        "lock_key": _id("inst", 0),
        "lock_shared": 0,
        "scope_kind": "project",
        "scope_id": project_id,
        "tenant_id": tenant_id,
        "payer_id": project_id,
        "turn": 0,
        "kind": "restart",
        "app_slug": notebooks.SLUG,
        "version": notebooks.VERSION,
        "status": "failed" if failed else "succeeded",
        "phase": "work",
        "step": 1,
        "steps": 1,
        "furthest_step": 1,
        "message": f"Restart {number} of {HISTORY}",
        "error": error if failed else None,
        "attempts": 1,
        "claim_epoch": 1,
        "not_before": began,
        "cancel_requested": 0,
        "correlation_id": f"cor-crowd-{number}",
        "requested_by": "a-person",
        "created_at": began,
        "started_at": began + 100,
        "finished_at": began + 4_000,
    }
