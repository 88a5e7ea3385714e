"""What there is to hold and how much of it: `gpuaas sku`, `gpuaas region`, `gpuaas pool`, `gpuaas quota`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Destroying, Looking, Tenant
from ..session import session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import QuotaView, SkuView

sku = App(name="sku", help="The kinds of machines the platform knows.")
region = App(name="region", help="Where machines stand.")
pool = App(name="pool", help="Named sets of a tenant's machines.")
quota = App(name="quota", help="How much a project may hold.")


@sku.command(name="list")
def list_skus(*, common: Looking = Looking()) -> None:
    """The kinds of machines, and what an hour costs.

    Example: gpuaas sku list
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_skus))
    if common.json:
        return show.as_json(found)
    rows = [(s.name, f"{s.gpu_count} × {s.gpu_model}", str(s.cpus), str(s.memory_mb), _price(s)) for s in found]
    return show.table(
        ("NAME", "GPUS", "CPUS", "MEMORY MB", "AN HOUR"), rows, empty="No kinds of machines are described."
    )


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
    """Add a kind of machine to the platform (platform administrators).

    Example: gpuaas sku create h100-8x --gpu-model H100 --gpu-count 8 --cpus 96 --memory-mb 1000000
      --price-micros-per-hour 23500000 --currency EUR

    Parameters
    ----------
    name
        Small letters, digits and dashes.
    gpu_model
        As the machines report it, e.g. H100.
    gpu_count
        GPUs of one machine.
    cpus
        Processors of one machine.
    memory_mb
        Memory of one machine, in MB.
    price_micros_per_hour
        What an hour costs, in millionths of the currency.
    currency
        Three letters, e.g. EUR.
    """
    with session(common) as at:
        size = {"gpu_count": gpu_count, "cpus": cpus, "memory_mb": memory_mb}
        price = {"price_micros_per_hour": price_micros_per_hour}
        made = at.client.create_sku(name=name, gpu_model=gpu_model, currency=currency, **size, **price)
    if common.json:
        return show.as_json(made)
    print(f"{made.name}: {made.gpu_count} × {made.gpu_model}, {_price(made)} an hour.")
    return None


@region.command(name="list")
def list_regions(*, common: Looking = Looking()) -> None:
    """The regions there are.

    Example: gpuaas region list
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_regions))
    if common.json:
        return show.as_json(found)
    return show.table(("NAME", "TITLE"), [(r.name, r.title) for r in found], empty="No regions are described.")


@region.command(name="create")
def create_region(name: str, *, title: str, common: Changing = Changing()) -> None:
    """Add a region to the platform (platform administrators).

    Example: gpuaas region create eu-west --title "Europe, west"

    Parameters
    ----------
    name
        Small letters, digits and dashes.
    title
        As people call it.
    """
    with session(common) as at:
        made = at.client.create_region(name=name, title=title)
    if common.json:
        return show.as_json(made)
    print(f"The region {made.name} is there: {made.title}.")
    return None


@pool.command(name="list")
def list_pools(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """The tenant's pools.

    Example: gpuaas pool list
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_pools, at.tenant_id(tenant)))
    if common.json:
        return show.as_json(found)
    return show.table(("NAME", "TITLE"), [(p.name, p.title) for p in found], empty="No pools.")


@pool.command(name="create")
def create_pool(name: str, *, title: str, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Make a pool; machines join it with `gpuaas node pool` or `gpuaas node enrol --pool`.

    Example: gpuaas pool create night-shift --title "Night shift"

    Parameters
    ----------
    name
        Small letters, digits and dashes.
    title
        As people call it.
    """
    with session(common) as at:
        made = at.client.create_pool(at.tenant_id(tenant), name=name, title=title)
    if common.json:
        return show.as_json(made)
    print(f"The pool {made.name} is there. Put a machine in: gpuaas node pool MACHINE {made.name}")
    return None


@quota.command(name="show")
def show_quota(*, common: Looking = Looking()) -> None:
    """What the project may hold, and what it holds.

    Example: gpuaas quota show --project research
    """
    with session(common) as at:
        found = at.client.get_quota(at.project_id)
    if common.json:
        return show.as_json(found)
    return _tell_quota(found)


def _tell_quota(found: QuotaView) -> None:
    allocations = _of(found.used_allocations, found.max_allocations)
    return show.facts([("allocations", allocations), ("GPUs", _of(found.used_gpus, found.max_gpus))])


def _of(used: int, most: int | None) -> str:
    return f"{used}, no bound" if most is None else f"{used} of {most}"


@quota.command(name="set")
def set_quota(
    *, max_allocations: int | None = None, max_gpus: int | None = None, common: Changing = Changing()
) -> None:
    """Bound what the project may hold (tenant administrators). What is left out has no bound.

    Example: gpuaas quota set --project research --max-allocations 10 --max-gpus 40

    Parameters
    ----------
    max_allocations
        Most machines held at once.
    max_gpus
        Most GPUs held at once.
    """
    with session(common) as at:
        found = at.client.set_quota(at.project_id, max_allocations=max_allocations, max_gpus=max_gpus)
    if common.json:
        return show.as_json(found)
    return _tell_quota(found)


@sku.command(name="delete")
def delete_sku(name: str, *, common: Destroying = Destroying()) -> None:
    """Take away a kind of machine of which there is none (platform administrators).

    Example: gpuaas sku delete h100-8x

    Parameters
    ----------
    name
        Small letters, digits and dashes.
    """
    with session(common) as at:
        gone = at.client.delete_sku(name=name)
    return show.as_json(gone) if common.json else print(f"{gone.name} is gone.")


@region.command(name="delete")
def delete_region(name: str, *, common: Destroying = Destroying()) -> None:
    """Take away a region where no machine stands (platform administrators).

    Example: gpuaas region delete eu-west

    Parameters
    ----------
    name
        Small letters, digits and dashes.
    """
    with session(common) as at:
        gone = at.client.delete_region(name=name)
    return show.as_json(gone) if common.json else print(f"{gone.name} is gone.")


@pool.command(name="delete")
def delete_pool(name: str, *, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Take away an empty pool.

    Example: gpuaas pool delete night-shift

    Parameters
    ----------
    name
        Small letters, digits and dashes.
    """
    with session(common) as at:
        gone = at.client.delete_pool(at.tenant_id(tenant), name=name)
    return show.as_json(gone) if common.json else print(f"{gone.name} is gone.")
