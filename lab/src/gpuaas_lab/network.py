"""The lab's network: a bridge on this machine, and per host a network namespace with one link to it. There is no route
out.

Hosts have no default route and there is no NAT: they reach only each other and, on the bridge's address, what the
firewall allows. Every function checks the current state first, so it can be repeated after a crash.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuaas_lab.errors import CommandFailed
from gpuaas_lab.plan import Plan, bridge_name, link_tag, namespace, namespace_prefix, veth_prefix
from gpuaas_lab.run import run, succeeds

NETNS = Path("/run/netns")
INSIDE = "host0"
GATEWAY = 1  # last octet of the bridge's own address


def ensure_bridge(plan: Plan) -> None:
    if not link_exists(plan.bridge):
        run(["ip", "link", "add", "name", plan.bridge, "type", "bridge"])
    run(["ip", "link", "set", plan.bridge, "alias", plan.link_tag])
    run(["ip", "link", "set", plan.bridge, "address", plan.mac(GATEWAY)])  # else it takes that of any cable that comes
    run(["ip", "addr", "replace", f"{plan.gateway}/{plan.subnet.prefixlen}", "dev", plan.bridge])
    run(["ip", "link", "set", plan.bridge, "up"])


def plug_in(plan: Plan, name: str, number: int) -> str:
    """Create the namespace `name` and its link to the bridge. Returns the namespace's name."""
    space, cable = namespace(plan.lab, name), plan.veth(number)
    if not namespace_usable(space):
        run(["ip", "netns", "del", space], check=False)
        run(["ip", "netns", "add", space])
    if not link_exists(cable):
        peer = ["peer", "name", INSIDE, "address", plan.mac(number), "netns", space]
        run(["ip", "link", "add", cable, "type", "veth", *peer])
    run(["ip", "link", "set", cable, "alias", plan.link_tag])
    run(["ip", "-n", space, "addr", "replace", plan.cidr(number), "dev", INSIDE])
    run(["ip", "-n", space, "link", "set", "lo", "up"])
    run(["ip", "-n", space, "link", "set", INSIDE, "up"])
    run(["ip", "link", "set", cable, "master", plan.bridge, "up"])
    return space


def pull_cable(cable: str) -> None:
    """Cut a host's link. On power loss this comes first, so that peers see silence instead of closed connections."""
    _unless_gone(["ip", "link", "set", cable, "down"], lambda: link_exists(cable))


def plug_cable(cable: str) -> None:
    """Restore the link after `pull_cable`; the host is still running."""
    run(["ip", "link", "set", cable, "up"])


def unplug(lab: str, name: str, cable: str | None) -> None:
    if cable:
        delete_link(cable)
    space = namespace(lab, name)
    _unless_gone(["ip", "netns", "del", space], lambda: namespace_exists(space))


def delete_link(name: str) -> None:
    _unless_gone(["ip", "link", "del", name], lambda: link_exists(name))


def _unless_gone(argv: list[str], exists: Callable[[], bool]) -> None:
    """Run a command and ignore its failure if the kernel removed the link meanwhile."""
    if exists():
        result = run(argv, check=False)
        if result.exit != 0 and exists():
            raise CommandFailed(" ".join(argv), result.exit, result.error_text)


def link_exists(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def namespace_exists(name: str) -> bool:
    return (NETNS / name).exists()


def namespace_usable(name: str) -> bool:
    """Return True if the name is a live namespace, not a plain file that a reboot left in /run/netns."""
    return namespace_exists(name) and succeeds(["ip", "-n", name, "link", "show", "lo"])


def our_links(lab: str, slot: int | None) -> list[str]:
    """Return the lab's links, by its tag, its bridge or (if the tag is not written yet) the name of its slot. The
    bridge is last."""
    found = _links()
    tagged = {link["ifname"] for link in found if link.get("ifalias") == link_tag(lab)}
    bridges = {link["ifname"] for link in found if link["ifname"] in tagged and _is_bridge(link)}
    if slot is not None:
        bridges |= {link["ifname"] for link in found if link["ifname"] == bridge_name(slot)}
        tagged |= {link["ifname"] for link in found if link["ifname"].startswith(veth_prefix(slot))}
    plugged = {link["ifname"] for link in found if link.get("master") in bridges}
    return sorted((tagged | plugged) - bridges) + sorted(bridges)


def our_namespaces(lab: str) -> list[str]:
    """Return the namespaces of hosts and controllers, without the lab's prefix."""
    prefix = namespace_prefix(lab)
    found = sorted(path.name for path in NETNS.glob("*")) if NETNS.is_dir() else []
    return [name.removeprefix(prefix) for name in found if name.startswith(prefix)]


def slots_in_use() -> set[int]:
    names = [path.name.removeprefix("gpuaas") for path in Path("/sys/class/net").glob("gpuaas*")]
    return {int(name) for name in names if name.isdigit()}


def _is_bridge(link: dict[str, Any]) -> bool:
    return link.get("linkinfo", {}).get("info_kind") == "bridge"


def _links() -> list[dict[str, Any]]:
    return json.loads(run(["ip", "-j", "-d", "link", "show"]).text or "[]")
