"""Placement: which component goes on which allocation. People choose; nobody infers a host."""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..capacity.errors import AllocationInUse
from ..capacity.reads import allocations_by_id
from .errors import (
    AllocationKeptForOther,
    AllocationNotActive,
    AllocationUnknown,
    MachineNotClean,
    PlacementInvalid,
    TopologyUnknown,
)
from .tables import allocation_holds, instances, orphans

Placement = dict[str, list[str]]


def place(manifest: dict[str, Any], topology: str, intent: Placement) -> Placement:
    """The full placement: what was asked for, plus components that by the topology share a machine with another."""
    rules = rules_of(manifest, topology)
    unknown = sorted(set(intent) - set(rules))
    if unknown:
        raise PlacementInvalid(f"The topology {topology!r} has no component {unknown[0]!r}; it has {', '.join(rules)}.")
    full = {key: _chosen(key, rule, intent) for key, rule in rules.items()}
    for key, rule in rules.items():
        check_count(key, rule, full[key])
    _check_disjoint(rules, full)
    return {key: chosen for key, chosen in full.items() if chosen}


def check_allocations(tx: Connection, project_id: str, placement: Placement, *, lock: bool) -> dict[str, Row[Any]]:
    """Every chosen allocation is the project's, active and free; otherwise a problem that names it."""
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


def check_kept_for(version: Row[Any], found: dict[str, Row[Any]]) -> None:
    """An allocation that was asked for with a scheduler type takes apps of that type only."""
    backend = version.manifest["runtime_backend"]
    for row in found.values():
        if row.scheduler_type not in (None, backend):
            raise AllocationKeptForOther(
                f"The allocation {row.name!r} is kept for {row.scheduler_type}; {version.app_slug} runs on {backend}."
            )


def _check_free(tx: Connection, found: dict[str, Row[Any]]) -> None:
    held = (
        select(allocation_holds.c.allocation_id, instances.c.name)
        .join(instances, instances.c.id == allocation_holds.c.instance_id)
        .where(allocation_holds.c.allocation_id.in_(list(found)))
    )
    for row in tx.execute(held.order_by(allocation_holds.c.allocation_id)):
        name = found[row.allocation_id].name
        raise AllocationInUse(f"The allocation {name!r} is in use by the instance {row.name!r}.")


def _check_clean(tx: Connection, found: dict[str, Row[Any]]) -> None:
    """Whatever was given up on a machine without evidence may still be there, whoever held the machine then."""
    names = {row.node_id: row.name for row in found.values()}
    left = select(orphans.c.node_id).where(orphans.c.node_id.in_(list(names)), orphans.c.resolved_at.is_(None))
    for row in tx.execute(left.order_by(orphans.c.id).limit(1)):
        raise MachineNotClean(
            f"An instance was abandoned on {names[row.node_id]!r}, and nobody has looked at it since."
        )


def rules_of(manifest: dict[str, Any], topology: str) -> dict[str, dict[str, Any]]:
    known = {one["key"]: one["components"] for one in manifest["topologies"]}
    if topology not in known:
        raise TopologyUnknown(f"{topology!r} is not one of: {', '.join(known)}.")
    return known[topology]


def _chosen(key: str, rule: dict[str, Any], intent: Placement) -> list[str]:
    partner = rule.get("shares_with")
    if partner is None or partner not in intent:
        return list(intent.get(key, []))
    if key in intent and intent[key] != intent[partner]:
        raise PlacementInvalid(f"In this topology {key!r} runs on the same allocation as {partner!r}.")
    return list(intent[partner])


def check_count(key: str, rule: dict[str, Any], chosen: list[str]) -> None:
    least, most = rule["min"], rule.get("max")
    if len(set(chosen)) != len(chosen):
        raise PlacementInvalid(f"An allocation is named twice for {key!r}.")
    if len(chosen) < least or (most is not None and len(chosen) > most):
        asked = f"exactly {least}" if most == least else f"at least {least}" + (f" and at most {most}" if most else "")
        noun = "allocation" if (most or least) == 1 else "allocations"
        raise PlacementInvalid(f"The component {key!r} needs {asked} {noun}; {len(chosen)} given.")


def _check_disjoint(rules: dict[str, dict[str, Any]], full: Placement) -> None:
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
