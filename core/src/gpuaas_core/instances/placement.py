"""Placement: which component runs on which allocation. People choose the allocations; the platform never chooses a
host."""

from collections.abc import Mapping
from typing import Protocol

from sqlalchemy import Connection

from ..authz.context import Context
from ..capacity import holds
from ..capacity.errors import AllocationInUse
from ..capacity.holds import used_by
from ..capacity.reads import allocations_by_id
from ..capacity.rows import Holder
from ..catalog.manifest_types import Manifest, PlacementRule
from ..catalog.rows import AppVersionRow
from ..teardown.orphans import unresolved_node
from .errors import (
    AllocationKeptForOther,
    AllocationNotActive,
    AllocationUnknown,
    MachineNotClean,
    PlacementInvalid,
    TopologyUnknown,
)
from .reads import members_of
from .rows import InstanceRow
from .states import OF_INSTANCE

Placement = dict[str, list[str]]


class Allocation(Protocol):
    """The properties of an allocation and its machine that placement checks."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def node_id(self) -> str: ...
    @property
    def node_name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def sku(self) -> str: ...
    @property
    def scheduler_type(self) -> str | None: ...


Found = Mapping[str, Allocation]


def place(manifest: Manifest, topology: str, intent: Placement) -> Placement:
    """Return the requested placement together with the components that, by the topology, share a machine with another.
    Raise PlacementInvalid if the request does not fit the topology."""
    rules = rules_of(manifest, topology)
    unknown = sorted(set(intent) - set(rules))
    if unknown:
        raise PlacementInvalid(f"The topology {topology!r} has no component {unknown[0]!r}; it has {', '.join(rules)}.")
    full = {key: _chosen(key, rule, intent) for key, rule in rules.items()}
    for key, rule in rules.items():
        check_count(key, rule, full[key])
    _check_disjoint(rules, full)
    return {key: chosen for key, chosen in full.items() if chosen}


def check_allocations(tx: Connection, project_id: str, placement: Placement, *, lock: bool) -> Found:
    """Return the chosen allocations by id. Raise an error that names the first allocation that is unknown, inactive, in
    use or not clean."""
    wanted = sorted({allocation for chosen in placement.values() for allocation in chosen})
    found = allocations_by_id(tx, project_id, wanted, lock=lock)
    for allocation_id in wanted:
        row = found.get(allocation_id)
        if row is None:
            raise AllocationUnknown(f"The project has no allocation {allocation_id!r}.")
        if row.state != "active":
            raise AllocationNotActive(f"The allocation {row.name!r} is {row.state}.")
    _check_free(tx, found)
    _check_clean(tx, found)
    return found


def check_kept_for(version: AppVersionRow, found: Found) -> None:
    """Raise AllocationKeptForOther if an allocation is reserved for a scheduler type other than that of the app."""
    backend = version.manifest["runtime_backend"]
    for row in found.values():
        if row.scheduler_type not in (None, backend):
            raise AllocationKeptForOther(
                f"The allocation {row.name!r} is kept for {row.scheduler_type}; {version.app_slug} runs on {backend}."
            )


def _check_free(tx: Connection, found: Found) -> None:
    for allocation_id, user in sorted(used_by(tx, list(found)).items()):
        name = found[allocation_id].name
        raise AllocationInUse(f"The allocation {name!r} is in use by the instance {user.instance_name!r}.")


def _check_clean(tx: Connection, found: Found) -> None:
    """Raise MachineNotClean if an instance of any project was abandoned on one of the machines, and the machine was not
    inspected since."""
    names = {str(row.node_id): row.name for row in found.values()}
    if (node_id := unresolved_node(tx, list(names))) is not None:
        raise MachineNotClean(f"An instance was abandoned on {names[node_id]!r} and not inspected since.")


def rules_of(manifest: Manifest, topology: str) -> dict[str, PlacementRule]:
    known = {one["key"]: one["components"] for one in manifest["topologies"]}
    if topology not in known:
        raise TopologyUnknown(f"{topology!r} is not one of: {', '.join(known)}.")
    return known[topology]


def _chosen(key: str, rule: PlacementRule, intent: Placement) -> list[str]:
    partner = rule.get("shares_with")
    if partner is None or partner not in intent:
        return list(intent.get(key, []))
    if key in intent and intent[key] != intent[partner]:
        raise PlacementInvalid(f"In this topology {key!r} runs on the same allocation as {partner!r}.")
    return list(intent[partner])


def check_count(key: str, rule: PlacementRule, chosen: list[str]) -> None:
    least, most = rule["min"], rule.get("max")
    if len(set(chosen)) != len(chosen):
        raise PlacementInvalid(f"An allocation is named twice for {key!r}.")
    if len(chosen) < least or (most is not None and len(chosen) > most):
        asked = f"exactly {least}" if most == least else f"at least {least}" + (f" and at most {most}" if most else "")
        noun = "allocation" if (most or least) == 1 else "allocations"
        raise PlacementInvalid(f"The component {key!r} needs {asked} {noun}; {len(chosen)} given.")


def _check_disjoint(rules: dict[str, PlacementRule], full: Placement) -> None:
    owner: dict[str, str] = {}
    for key, chosen in sorted(full.items(), key=lambda one: bool(rules[one[0]].get("may_share_with"))):
        if rules[key].get("shares_with"):
            continue
        for allocation in chosen:
            if allocation in owner and rules[key].get("may_share_with") == owner[allocation]:
                continue  # people asked for it by naming the machine twice
            if allocation in owner:
                raise PlacementInvalid(f"The allocation {allocation!r} is named for {owner[allocation]!r} and {key!r}.")
            owner[allocation] = key


def hold(ctx: Context, instance: InstanceRow, placement: Placement, found: Found) -> None:
    wanted = {allocation for chosen in placement.values() for allocation in chosen}
    if not holds.hold(ctx.tx, wanted, Holder(OF_INSTANCE, instance.id)):
        names = ", ".join(found[allocation].name for allocation in sorted(wanted))
        raise AllocationInUse(f"Another instance took one of {names} a moment ago.")


def release_unused(ctx: Context, instance_id: str) -> None:
    """Release the allocations of the instance that no member uses any more."""
    used = {member.allocation_id for member in members_of(ctx.tx, instance_id)}
    holds.release(ctx.tx, Holder(OF_INSTANCE, instance_id), keep=used)
