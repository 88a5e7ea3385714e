"""The names and addresses of a lab, derived from its name and slot, without input or output.

Because names are derived, `down` can find what belongs to a lab even when the state files are lost. The default lab has
slot 0 (bridge gpuaas0, 10.88.0.0/24); another lab gets the lowest free slot N (gpuaasN, 10.88.N.0/24), so several
people can have their own hosts on one machine.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from gpuaas_lab.errors import BadName, NoAddressLeft

DEFAULT_LAB = "default"
SLOTS = 256
FIRST_CONTROLLER = 5
FIRST_HOST = 11
LAST_HOST = 250

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?")
_RULE = "1 to 20 of a-z, 0-9 and '-', starting with a letter, not ending with '-'"


def valid_name(kind: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadName(kind, name, _RULE)
    return name


def default_subnet(slot: int) -> IPv4Network:
    return IPv4Network(f"10.88.{slot}.0/24")


@dataclass(frozen=True)
class Plan:
    """The names and addresses of one lab."""

    lab: str
    slot: int
    subnet: IPv4Network

    @classmethod
    def of(cls, lab: str, slot: int, subnet: str | None = None) -> "Plan":
        network = IPv4Network(subnet) if subnet else default_subnet(slot)
        return cls(valid_name("lab", lab), slot, network)

    @property
    def bridge(self) -> str:
        return bridge_name(self.slot)

    @property
    def gateway(self) -> IPv4Address:
        return self.subnet[1]

    @property
    def nft_table(self) -> str:
        return nft_table(self.lab)

    @property
    def link_tag(self) -> str:
        return link_tag(self.lab)

    def veth(self, number: int) -> str:
        """Return the name of this machine's end of the link; `number` is the last octet of the host's address."""
        return f"{veth_prefix(self.slot)}{number}"

    def mac(self, number: int) -> str:
        """Return the MAC address for an IP address. It is fixed, so that a restarted host is reached without waiting
        for ARP."""
        return f"02:67:70:75:{self.slot:02x}:{number:02x}"

    def address(self, number: int) -> IPv4Address:
        return self.subnet[number]

    def cidr(self, number: int) -> str:
        return f"{self.subnet[number]}/{self.subnet.prefixlen}"


def bridge_name(slot: int) -> str:
    return f"gpuaas{slot}"


def veth_prefix(slot: int) -> str:
    return f"gp{slot}h"


def namespace(lab: str, name: str) -> str:
    """Return the name of the network namespace and of the nspawn machine. The dot in it prevents clashes between labs,
    since lab and host names have none."""
    return f"{namespace_prefix(lab)}{name}"


def namespace_prefix(lab: str) -> str:
    return "gpuaas-" if lab == DEFAULT_LAB else f"gpuaas.{lab}."


def nft_table(lab: str) -> str:
    return "gpuaas_lab" if lab == DEFAULT_LAB else f"gpuaas_lab_{lab.replace('-', '_')}"


def link_tag(lab: str) -> str:
    return f"gpuaas-lab:{lab}"


def cgroup_name(lab: str) -> str:
    return f"gpuaas-lab.{lab}"


def free_number(taken: Collection[int], first: int, last: int = LAST_HOST) -> int:
    """Return the lowest free last octet, starting at `first`."""
    for number in range(first, last + 1):
        if number not in taken:
            return number
    raise NoAddressLeft(
        "All addresses of this lab are taken.", "Remove hosts with `gpuaas-lab down`, or use another --lab."
    )
