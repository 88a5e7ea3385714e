"""Machine types, regions, pools and quotas: `gpuaas sku`, `gpuaas region`, `gpuaas pool`, `gpuaas quota`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Destroying, Looking, Tenant
from ..session import session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import QuotaView, SkuView

sku = App(name="sku", help="Manage the machine types (SKUs) of the platform.")
region = App(name="region", help="Manage the regions of the platform.")
pool = App(name="pool", help="Manage pools: named sets of a tenant's nodes.")
quota = App(name="quota", help="Show and set the limits of a project.")


@sku.command(name="list")
def list_skus(*, common: Looking = Looking()) -> None:
    """List the machine types (SKUs) and their hourly prices.

    Example: gpuaas sku list
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_skus))
    if common.json:
        return show.as_json(found)
    rows = [(s.name, f"{s.gpu_count} × {s.gpu_model}", str(s.cpus), str(s.memory_mb), _price(s)) for s in found]
    return show.table(("NAME", "GPUS", "CPUS", "MEMORY MB", "PER HOUR"), rows, empty="No machine types yet.")


def _price(sku: SkuView) -> str:
    return show.price(sku.price_micros_per_hour, sku.currency)


@sku.command(name="create")
def create_sku(
    name: str,
    *,
    gpu_model: str,
    gpu_count: int,
    cpus: int,
    memory_mb: int,
    price_micros_per_hour: int,
    currency: str,
    common: Changing = Changing(),
) -> None:
    """Create a machine type, also called SKU (platform administrators).

    Example: gpuaas sku create h100-8x --gpu-model H100 --gpu-count 8 --cpus 96 --memory-mb 1000000
      --price-micros-per-hour 23500000 --currency EUR

    Parameters
    ----------
    name
        The machine type's name: lowercase letters, digits and hyphens.
    gpu_model
        GPU model as the nodes report it, for example H100.
    gpu_count
        GPUs per machine.
    cpus
        CPUs per machine.
    memory_mb
        Memory per machine, in MB.
    price_micros_per_hour
        Price per hour, in millionths of the currency.
    currency
        Three letters, for example EUR.
    """
    with session(common) as at:
        size = {"gpu_count": gpu_count, "cpus": cpus, "memory_mb": memory_mb}
        price = {"price_micros_per_hour": price_micros_per_hour}
        made = at.client.create_sku(name=name, gpu_model=gpu_model, currency=currency, **size, **price)
    if common.json:
        return show.as_json(made)
    print(f"{made.name}: {made.gpu_count} × {made.gpu_model}, {_price(made)} per hour.")
    return None


@region.command(name="list")
def list_regions(*, common: Looking = Looking()) -> None:
    """List the regions of the platform.

    Example: gpuaas region list
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_regions))
    if common.json:
        return show.as_json(found)
    return show.table(("NAME", "TITLE"), [(r.name, r.title) for r in found], empty="No regions yet.")


@region.command(name="create")
def create_region(name: str, *, title: str | None = None, common: Changing = Changing()) -> None:
    """Create a region (platform administrators).

    Example: gpuaas region create eu-west --title "Europe, west"

    Parameters
    ----------
    name
        The region's name: lowercase letters, digits and hyphens.
    title
        Display name. Default: the name.
    """
    with session(common) as at:
        made = at.client.create_region(name=name, title=title or name)
    if common.json:
        return show.as_json(made)
    print(f"Created the region {made.name}: {made.title}.")
    return None


@pool.command(name="list")
def list_pools(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List the pools of the tenant.

    Example: gpuaas pool list
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_pools, at.tenant_id(tenant)))
    if common.json:
        return show.as_json(found)
    return show.table(("NAME", "TITLE"), [(p.name, p.title) for p in found], empty="No pools.")


@pool.command(name="create")
def create_pool(name: str, *, title: str | None = None, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Create a pool. Add nodes to the pool with `gpuaas node pool` or `gpuaas node enrol --pool`.

    Example: gpuaas pool create night-shift --title "Night shift"

    Parameters
    ----------
    name
        The pool's name: lowercase letters, digits and hyphens.
    title
        Display name. Default: the name.
    """
    with session(common) as at:
        made = at.client.create_pool(at.tenant_id(tenant), name=name, title=title or name)
    if common.json:
        return show.as_json(made)
    print(f"Created the pool {made.name}. Add a node: gpuaas node pool NODE {made.name}")
    return None


@quota.command(name="show")
def show_quota(*, common: Looking = Looking()) -> None:
    """Show the limits and the usage of the project.

    Example: gpuaas quota show --project research
    """
    with session(common) as at:
        found = at.client.get_quota(at.project_id)
    if common.json:
        return show.as_json(found)
    return _print_quota(found)


def _print_quota(found: QuotaView) -> None:
    allocations = _of(found.used_allocations, found.max_allocations)
    return show.facts([("allocations", allocations), ("GPUs", _of(found.used_gpus, found.max_gpus))])


def _of(used: int, most: int | None) -> str:
    return f"{used}, no limit" if most is None else f"{used} of {most}"


@quota.command(name="set")
def set_quota(
    *, max_allocations: int | None = None, max_gpus: int | None = None, common: Changing = Changing()
) -> None:
    """Set the limits of the project (tenant administrators). If you omit an option, that limit is removed.

    Example: gpuaas quota set --project research --max-allocations 10 --max-gpus 40

    Parameters
    ----------
    max_allocations
        Maximum number of nodes.
    max_gpus
        Maximum number of GPUs.
    """
    with session(common) as at:
        found = at.client.set_quota(at.project_id, max_allocations=max_allocations, max_gpus=max_gpus)
    if common.json:
        return show.as_json(found)
    return _print_quota(found)


@sku.command(name="delete")
def delete_sku(name: str, *, common: Destroying = Destroying()) -> None:
    """Delete a machine type that no node has (platform administrators).

    Example: gpuaas sku delete h100-8x

    Parameters
    ----------
    name
        A name from `gpuaas sku list`.
    """
    with session(common) as at:
        gone = at.client.delete_sku(name=name)
    return show.as_json(gone) if common.json else print(f"Deleted {gone.name}.")


@region.command(name="delete")
def delete_region(name: str, *, common: Destroying = Destroying()) -> None:
    """Delete a region without nodes (platform administrators).

    Example: gpuaas region delete eu-west

    Parameters
    ----------
    name
        A name from `gpuaas region list`.
    """
    with session(common) as at:
        gone = at.client.delete_region(name=name)
    return show.as_json(gone) if common.json else print(f"Deleted {gone.name}.")


@pool.command(name="delete")
def delete_pool(name: str, *, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Delete an empty pool.

    Example: gpuaas pool delete night-shift

    Parameters
    ----------
    name
        A name from `gpuaas pool list`.
    """
    with session(common) as at:
        gone = at.client.delete_pool(at.tenant_id(tenant), name=name)
    return show.as_json(gone) if common.json else print(f"Deleted {gone.name}.")
