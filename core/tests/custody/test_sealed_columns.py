"""Every sealed column there is: a ciphertext opens where it lies, and in no other row, tenant, version or column.

The columns come from their declarations. A new one is covered by itself, and fails here until a test makes one for real.
"""

import itertools
from types import SimpleNamespace
from typing import Any

import gpuaas_core.main  # noqa: F401 - every room declares its sealed columns
import pytest
from gpuaas_core.custody.key_providers.port import CustodyFailed
from gpuaas_core.custody.rotation import reseal, rotate_data_key
from gpuaas_core.custody.tables import data_keys
from gpuaas_core.kit.vault import SEALED, SealedColumn
from sqlalchemy import Integer, UniqueConstraint, select, update

from core.tests.credentials.test_credentials import made as made_credential
from core.tests.credentials.test_credentials import of as credential
from core.tests.credentials.test_secrets import deliver
from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import World, add_user

PLACES = {f"{place.table.name}.{place.column.name}": place for place in SEALED}


def row_of(place: SealedColumn, number: int = 1) -> Any:
    """A row as the binding sees it; no two numbers have a value in common."""
    value = {True: number, False: f"value-{number}"}
    return SimpleNamespace(**{c.name: value[isinstance(c.type, Integer)] for c in place.table.columns})


def binding(place: SealedColumn, row: Any) -> tuple[str, str]:
    return getattr(row, place.tenant.name), place.bound_to(row)


def keys_of(place: SealedColumn) -> list[set[str]]:
    """What names one row of the table, and no other."""
    unique = [c for c in place.table.constraints if isinstance(c, UniqueConstraint)]
    return [{c.name for c in key.columns} for key in (place.table.primary_key, *unique)]


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_value_is_bound_to_its_tenant_and_to_all_that_names_its_row(place: SealedColumn) -> None:
    mine, other = row_of(place), row_of(place, 2)

    def with_other(column: str) -> Any:
        return SimpleNamespace(**vars(mine) | {column: getattr(other, column)})

    assert binding(place, with_other(place.tenant.name)) != binding(place, mine)
    bound = [key for key in keys_of(place) if all(binding(place, with_other(c)) != binding(place, mine) for c in key)]
    assert bound, "let bound_to say every column of a key, or a ciphertext can be moved to another row"


def test_two_columns_never_share_a_binding() -> None:
    for one, other in itertools.combinations(SEALED, 2):
        assert binding(one, row_of(one)) != binding(other, row_of(other))


async def _two_tenants_with_one_of_each(world: World) -> None:
    """Real ones, through the API, under two data keys per tenant."""
    second = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    elsewhere = World()
    elsewhere.__dict__ |= vars(world) | {"tenant": second}
    elsewhere.boss, _ = await add_user(elsewhere, "boss@other.example", "tenant_admin", by=world.admin)
    elsewhere.red = (await elsewhere.boss.ok(f"/v1/tenants/{second}/projects", {"slug": "red", "name": "Red"}))["id"]
    instance = await world.running()
    for number in range(2):
        for place in (world, elsewhere):
            provider = {"name": f"P{number}", "issuer": f"https://p{number}.example", "client_id": "c"}
            path = f"/v1/tenants/{place.tenant}/identity-providers"
            await place.boss.ok(path, provider | {"client_secret": f"client-secret-{number}"})
            await place.boss.ok(f"/v1/tenants/{place.tenant}/enrolments", {"node_name": f"new-{number}"})
            source = {"name": f"files-{number}", "kind": "blob", "base_url": "https://files.example/"}
            source["credential"] = {"kind": "bearer", "token": f"token-of-a-source-{number}"}
            await place.boss.ok(f"/v1/tenants/{place.tenant}/artifact-sources", source)
            kept = await made_credential(place, f"storage-{number}")
            await place.boss.ok(credential(place, kept["id"], "rotate"))
            world.platform.db.write_now(
                lambda tx, tenant=place.tenant: rotate_data_key(tx, world.platform.vault, tenant)
            )
        for name in ("one", "two"):
            await world.boss.ok(world.of(instance, "secrets"), {"name": name})


def _cells(world: World) -> list[tuple[SealedColumn, Any, bytes]]:
    def read(tx: Any) -> list[tuple[SealedColumn, Any, bytes]]:
        found = [(place, row) for place in SEALED for row in tx.execute(select(place.table))]
        return [(p, row, row._mapping[p.column.name]) for p, row in found if row._mapping[p.column.name] is not None]

    return world.platform.db.read_now(read)


async def test_every_ciphertext_opens_where_it_lies_and_nowhere_else(world: World) -> None:
    await _two_tenants_with_one_of_each(world)
    cells, vault = _cells(world), world.platform.vault
    missing = set(PLACES) - {f"{place.table.name}.{place.column.name}" for place, _, _ in cells}
    assert not missing, "make a real one above"
    assert len({getattr(row, place.tenant.name) for place, row, _ in cells}) == 2
    assert len({vault.version_of(sealed) for *_, sealed in cells}) > 1

    def swap(tx: Any) -> int:
        refused = 0
        for (place, row, mine), (*_, theirs) in itertools.product(cells, repeat=2):
            tenant, bound_to = binding(place, row)
            if theirs == mine:
                assert vault.unseal(tx, tenant, theirs, bound_to)
                continue
            with pytest.raises(CustodyFailed, match="sealed value"):
                vault.unseal(tx, tenant, theirs, bound_to)
            refused += 1
        return refused

    assert world.platform.db.read_now(swap) == len(cells) * (len(cells) - 1) > 300


async def test_a_swapped_ciphertext_stops_a_reseal_and_is_not_sealed_again(world: World) -> None:
    await _two_tenants_with_one_of_each(world)
    db, vault = world.platform.db, world.platform.vault

    def put(place: SealedColumn, row: Any, sealed: bytes) -> None:
        this = [key == row._mapping[key.name] for key in place.table.primary_key]
        db.write_now(lambda tx: tx.execute(update(place.table).where(*this).values({place.column.name: sealed})))

    for place in SEALED:
        (_, one, first), (_, other, second), *_ = [cell for cell in _cells(world) if cell[0] is place]
        put(place, one, second)
        put(place, other, first)
        db.write_now(lambda tx: rotate_data_key(tx, vault, world.tenant))
        with pytest.raises(CustodyFailed):
            reseal(db, vault)
        put(place, one, first)
        put(place, other, second)
    assert reseal(db, vault) > 0


@pytest.mark.parametrize("restarted", [True, False])
async def test_a_data_key_put_into_another_row_opens_nothing(world: World, restarted: bool) -> None:
    """Also while the right one is still in memory."""
    await _two_tenants_with_one_of_each(world)
    k, db, vault = data_keys.c, world.platform.db, world.platform.vault
    all_keys = db.read_now(lambda tx: tx.execute(select(data_keys)).all())
    instance = (await world.boss.get(f"/v1/projects/{world.red}/instances")).json()["items"][0]
    await world.boss.ok(world.of(instance, "restart"))
    claim = await world.claim()
    mine = [row for row in all_keys if row.owner == world.tenant]
    for row in all_keys:
        if row.owner == world.tenant:
            continue
        with db.engine.begin() as tx:
            tx.execute(update(data_keys).where(k.owner == world.tenant).values(wrapped=row.wrapped))
        if restarted:
            vault.forget()
        check_problem(await deliver(world, claim, "one"), 503, "custody_failed")
    with db.engine.begin() as tx:
        for row in mine:
            here = (k.owner == row.owner) & (k.version == row.version)
            tx.execute(update(data_keys).where(here).values(wrapped=row.wrapped))
    assert (await deliver(world, claim, "one")).status_code == 200
