"""The lab's network: a bridge in the machine's own namespace, one namespace with one cable per host, and no way out.

Hosts have no default route and there is no NAT: they reach only each other and, on the bridge's address, what the
firewall lets through. Every function looks first and then does, so it can be repeated after a crash.
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
    """Make the namespace `name` and lay its cable to the bridge; returns the namespace's name."""
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
    """Cut the cable first when power is lost: peers then see silence, not closed connections."""
    _unless_gone(["ip", "link", "set", cable, "down"], lambda: link_exists(cable))


def plug_cable(cable: str) -> None:
    """In again after `pull_cable`, with the host still running at its other end."""
    run(["ip", "link", "set", cable, "up"])


def unplug(lab: str, name: str, cable: str | None) -> None:
    if cable:
        delete_link(cable)
    space = namespace(lab, name)
    _unless_gone(["ip", "netns", "del", space], lambda: namespace_exists(space))


def delete_link(name: str) -> None:
    _unless_gone(["ip", "link", "del", name], lambda: link_exists(name))


def _unless_gone(argv: list[str], exists: Callable[[], bool]) -> None:
    """The kernel may take a link away between our look and our act: that is no failure."""
    if exists():
        result = run(argv, check=False)
        if result.exit != 0 and exists():
            raise CommandFailed(" ".join(argv), result.exit, result.error_text)


def link_exists(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def namespace_exists(name: str) -> bool:
    return (NETNS / name).exists()


def namespace_usable(name: str) -> bool:
    """A plain file left in /run/netns after a reboot is no namespace."""
    return namespace_exists(name) and succeeds(["ip", "-n", name, "link", "show", "lo"])


def our_links(lab: str, slot: int | None) -> list[str]:
    """Links with the lab's tag, plugged into its bridge, or (tag not yet written) named for its slot. Bridge last."""
    found = _links()
    tagged = {link["ifname"] for link in found if link.get("ifalias") == link_tag(lab)}
    bridges = {link["ifname"] for link in found if link["ifname"] in tagged and _is_bridge(link)}
    if slot is not None:
        bridges |= {link["ifname"] for link in found if link["ifname"] == bridge_name(slot)}
        tagged |= {link["ifname"] for link in found if link["ifname"].startswith(veth_prefix(slot))}
    plugged = {link["ifname"] for link in found if link.get("master") in bridges}
    return sorted((tagged | plugged) - bridges) + sorted(bridges)


def our_namespaces(lab: str) -> list[str]:
    """Names without the prefix: hosts and controllers alike."""
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
