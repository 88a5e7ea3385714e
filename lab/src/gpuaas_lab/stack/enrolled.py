"""Turns lab hosts into nodes of the demo tenant and allocates them to projects. Both functions can be repeated."""

from collections.abc import Sequence

from gpuaas_lab.enrolment import enrol_all
from gpuaas_lab.hosts import Lab
from gpuaas_lab.stack.platform import wait_for
from gpuaas_lab.stack.seed import Demo


def enrol_hosts(lab: Lab, demo: Demo, api: str, hosts: Sequence[str] = ()) -> dict[str, str]:
    """Enrol every running host (or the named ones) and wait until each is ready. Returns node ids by host name."""
    return {one.host: one.node_id for one in enrol_all(lab, demo.boss, demo.tenant_id, api, hosts)}


def allocate(demo: Demo, project: str, node_id: str, name: str | None = None) -> str:
    """Return the project's active allocation of this node, created if needed."""
    project_id = demo.projects[project]
    held = {one.node_id: one.id for one in demo.boss.list_allocations(project_id, limit=200).items}
    allocation = held.get(node_id) or demo.boss.create_allocation(project_id, node_id=node_id, name=name).id
    wait_for(
        lambda: demo.boss.get_allocation(project_id, allocation).state == "active",
        180,
        lambda: (
            "The host has not taken up the allocation's trust; look at its agent: "
            "gpuaas-lab exec HOST -- journalctl -u gpuaas-agent"
        ),
    )
    return allocation
