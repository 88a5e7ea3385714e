"""The drift report: what differs from what the platform configured, who changed it if known, and what can be done.

`kind`: `person` (changed by hand), `slurm` (changed by Slurm), `lost` (missing), `pending` (the platform has a newer
value to apply). `revert` restores the platform's value, `adopt` makes the found value the platform's; empty means not
possible. This module only reports: each entry names the command to run. The checks are cheap and correct, not complete.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gpuaas_slurm import __version__
from gpuaas_slurm.health import SLURM_ITSELF, Worker, put_back
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.probes import HeadSeen
from gpuaas_slurm.slurm import hints

MOST = 50
COMPARED = ("State", "MaxTime", "DefaultTime", "AllowAccounts", "AllowGroups", "AllowQos")
UNLIMITED = ("INFINITE", "UNLIMITED")
LIMITED = re.compile(r"\b(Grp|Max)\w+=")  # the platform set limits of its own there


@dataclass(frozen=True)
class Entry:
    what: str
    where: str
    kind: str
    sentence: str
    revert: str = ""
    adopt: str = ""

    def row(self) -> dict[str, str]:
        """Return the entry as a row of `adapter_detail`. The sentence is in the field `said`, which CLI and console
        read."""
        shown = {**vars(self), "said": self.sentence}
        return {name: shown[name] for name in ("what", "where", "kind", "said", "revert", "adopt") if shown[name]}


def ledger(
    name: str, plan: Plan, head: HeadSeen, workers: Iterable[Worker], app_version: str = __version__
) -> list[dict[str, Any]]:
    known = tuple(workers)
    if not head.reached:
        return []
    found = [*_files(name, plan, head, known), *_version(name, app_version)]
    if head.answers:
        found += [*_nodes(head, known), *_partitions(name, head)]
    found += list(_accounts(name, plan, head))
    return [entry.row() for entry in found[:MOST]]


def _files(name: str, plan: Plan, head: HeadSeen, workers: tuple[Worker, ...]) -> Iterator[Entry]:
    hosts = {plan.controller.host: head} | {one.slot.host: one.host for one in workers if one.host}
    for host, seen in hosts.items():
        for how, path, when in seen.files:
            kind = "lost" if how == "lost" else "person"
            sentence = "The file is missing." if how == "lost" else f"The file was changed by hand ({when})."
            yield Entry(path, host, kind, sentence, revert=put_back(name))


def _version(name: str, app_version: str) -> Iterator[Entry]:
    if app_version and app_version != __version__:
        sentence = f"Its files are of version {app_version} of the app; the controller is {__version__}."
        yield Entry("version", "cluster", "pending", sentence, revert=f"`gpuaas instance upgrade {name} {__version__}`")


def _nodes(head: HeadSeen, workers: tuple[Worker, ...]) -> Iterator[Entry]:
    ours = {one.slot.node for one in workers}
    for one in workers:
        if one.node is None and not one.in_work:
            yield Entry(one.slot.node, one.slot.host, "lost", "Slurm has no such node.", revert=one.command("restart"))
        elif one.node is not None and one.drained and not one.as_asked and not one.ours:
            who = "Slurm" if one.node.by == SLURM_ITSELF else one.node.by or "an unknown user"
            since = f" since {one.node.since}" if one.node.since else ""
            yield Entry(
                one.slot.node,
                one.slot.host,
                "slurm" if one.node.by == SLURM_ITSELF else "person",
                f"Drained by {who}{since}: {one.node.reason}.",
                revert=f"on the controller: {hints.undrain(one.slot.node)}",
                adopt=f"{one.command('drain')}: the platform counts it as drained",
            )
    for other in sorted(head.nodes.keys() - ours):
        sentence = "A node that is not a member of this instance."
        yield Entry(other, "cluster", "person", sentence, revert=f"stop its slurmd, then: {hints.delete_node(other)}")


def _partitions(name: str, head: HeadSeen) -> Iterator[Entry]:
    back = put_back(name)
    for part in sorted(head.partitions.keys() - head.wanted.keys()):
        yield Entry(part, "cluster", "person", "A partition that slurm.conf does not have.", revert=back)
    for part in sorted(head.wanted.keys() - head.partitions.keys()):
        yield Entry(part, "cluster", "lost", "The scheduler does not have the partition.", revert=back)
    for part in sorted(head.wanted.keys() & head.partitions.keys()):
        wanted, seen = head.wanted[part], head.partitions[part]
        for key in COMPARED:
            if key in wanted and key in seen and _same(key, wanted[key]) != _same(key, seen[key]):
                sentence = f"{key} is {seen[key]}; slurm.conf says {wanted[key]}."
                adopt = "leave it so: nothing but a reconfigure or restart puts it back" if key == "State" else ""
                yield Entry(part, "cluster", "person", sentence, revert=back, adopt=adopt)


def _accounts(name: str, plan: Plan, head: HeadSeen) -> Iterator[Entry]:
    for account, user, limits in sorted(head.associations):
        whose = f"{account}/{user}" if user else account
        if (account, user) not in head.made:
            sentence = (
                f"The user {user} was added to the account {account}." if user else f"The account {account} was added."
            )
            adopt = "leave it so: the platform does not touch accounts it did not make"
            yield Entry(
                whose,
                "accounting",
                "person",
                sentence,
                revert=f"on the controller: {hints.delete_association(account, user)}",
                adopt=adopt,
            )
        elif limits and not LIMITED.search(head.made[(account, user)]):
            yield Entry(whose, "accounting", "person", f"Limits were set: {limits}.", adopt="leave it so")
    if head.accounts and (plan.account, plan.user) not in {(a, u) for a, u, _ in head.associations}:
        sentence = f"The user {plan.user} is no longer in the account {plan.account}: jobs are refused."
        yield Entry(f"{plan.account}/{plan.user}", "accounting", "lost", sentence, revert=put_back(name))


def _same(key: str, value: str) -> object:
    """Return the value in a form that can be compared: Slurm prints minutes as days and hours, and has two words for
    unlimited."""
    if not key.endswith("Time"):
        return value.upper()
    if value.upper() in UNLIMITED:
        return "UNLIMITED"
    if value.isdigit():
        return int(value)
    found = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+)(?::(\d+))?", value)
    if not found:
        return value
    days, hours, minutes, _ = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes
