"""A store copied while it serves, and brought back: everything is there, and nothing that others know goes back."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.audit import anchoring
from gpuaas_core.audit.audit_log import begin_again
from gpuaas_core.audit.verify import verify
from gpuaas_core.backup import commands, copies, restore_fencing
from gpuaas_core.custody.key_providers.embedded import Embedded
from gpuaas_core.http.call import Platform
from gpuaas_core.kit.db import Database
from gpuaas_core.migrations.migrate import migrate

from core.tests.custody.test_custody import _grant as grant
from core.tests.doctor.test_doctor import _examined as examined
from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import (
    ADMIN,
    Api,
    MovableClock,
    Store,
    World,
    applied,
    apply_trust,
    caller,
    database_url,
    enrol_body,
    invite,
    machine_token,
    new_store,
    open_platform,
    poll,
    remove_store,
    sign_in,
)
from core.tests.support.served import Served, calling, free_port, serving
from core.tests.support.store_rows import dump, one, rows


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """An empty store, with the master key in its place."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    new_store(folder)
    yield folder
    remove_store(folder)


def copied(world: World, folder: Path) -> Path:
    platform = world.platform
    assert platform.checkpoints is not None
    copies.write(platform.db, platform.checkpoints.folder, folder / "backup", platform.clock())
    return folder / "backup"


def brought_back(backup: Path, place: Path, store_folder: Path, url: str = "") -> None:
    shutil.copy2(store_folder / "master.key", place)
    manifest = copies.read_manifest(backup)
    migrate(url or database_url(place), manifest["schema"])
    db = Database(url or database_url(place))
    with db.engine.begin() as tx:
        copies.load(tx, backup, manifest)
    db.close()


@contextlib.asynccontextmanager
async def restored(
    world: World, backup: Path, place: Path, store_folder: Path, clock: MovableClock
) -> AsyncIterator[World]:
    """The same people and machines, and a core on the restored store."""
    brought_back(backup, place, store_folder)
    with open_platform(place, clock) as platform:
        platform.db.write_now(lambda tx: restore_fencing.fence(tx, "a test", clock()))
        async with caller(platform) as api:
            again = world.through(api.http)
            again.platform = platform
            yield again


async def test_everything_is_there_again_and_only_its_owner_may_read_the_copy(
    world: World, place: Path, tmp_path: Path, store_folder: Path, clock: MovableClock
) -> None:
    await world.running()
    before = dump(world.platform, without=set())
    backup = copied(world, tmp_path)
    brought_back(backup, place, store_folder)
    with open_platform(place, clock) as platform:
        assert dump(platform, without=set()) == before
        assert examined(platform) == {}
    assert oct(backup.stat().st_mode & 0o777) == "0o700"
    assert {oct(path.stat().st_mode & 0o777) for path in backup.rglob("*") if path.is_file()} == {"0o600"}


async def test_a_backup_taken_between_writes_is_one_moment(
    world: World, place: Path, tmp_path: Path, store_folder: Path, clock: MovableClock
) -> None:
    """Events are dense, so a copy of two moments would show: a head without its event, or an event too many."""

    async def write() -> None:
        for number in range(12):
            path = f"/v1/tenants/{world.tenant}/projects"
            await world.boss.ok(path, {"slug": f"p-{number}", "name": "P"})

    busy = asyncio.create_task(write())
    await asyncio.sleep(0.05)
    backup = await asyncio.to_thread(copied, world, tmp_path)
    await busy
    brought_back(backup, place, store_folder)
    with open_platform(place, clock) as platform:
        assert examined(platform) == {}
        head = "select sequence from event_heads where tenant_id = :tenant"
        last = "select max(sequence) from events where tenant_id = :tenant"
        assert one(platform, head, tenant=world.tenant) == one(platform, last, tenant=world.tenant)


async def _after_the_backup(world: World, claim: Any, node: str, machine: Api) -> Any:
    """What the restored store will not know: five generations of trust, two more claims, a release."""
    await world.boss.ok(f"/v1/projects/{world.blue}/allocations/{world.blue_allocation}/release")
    await apply_trust(node, machine)
    for _ in range(2):
        held = await world.boss.ok(f"/v1/projects/{world.red}/allocations", {"node_id": node})
        await apply_trust(node, machine)
        await world.boss.ok(f"/v1/projects/{world.red}/allocations/{held['id']}/release")
        await apply_trust(node, machine)
    for _ in range(2):
        claim = await world.claim()
    return claim


async def test_nothing_that_others_know_goes_back(
    world: World, place: Path, tmp_path: Path, store_folder: Path, clock: MovableClock
) -> None:
    node, machine = world.nodes[2], world.machine
    await world.deploy()
    claim = await world.claim()
    token = await invite(world, "not-yet")
    backup = copied(world, tmp_path)
    events = f"/v1/tenants/{world.tenant}/events"
    cursor = (await world.boss.get(events)).json()["next_after"]
    known = await _after_the_backup(world, claim, node, machine)
    generation = (await world.boss.get(f"/v1/nodes/{node}")).json()["trust_generation"]
    async with restored(world, backup, place, store_folder, clock) as again:
        assert (await again.boss.get(events)).status_code == 401, "people sign in again"
        again.boss = await sign_in(again.api, "boss@acme.example")
        again.controller = await machine_token(again.api, world.controller_key, world.controller_id, again.now())
        machine = await machine_token(again.api, world.machine_key, node, again.now())
        check_problem(await again.boss.get(events, params={"after": cursor}), 410, "cursor_epoch_changed")
        check_problem(
            await again.api.post("/v1/enrol", enrol_body(token, "x", again.machine_key)), 401, "enrolment_token_invalid"
        )
        await _claims_are_fenced(again, claim, known)
        await _the_machine_gets_its_trust_again(again, node, machine, generation)
        assert examined(again.platform) == {}
        said = "select reason from audit where permission = 'platform.store.restore'"
        assert one(again.platform, said) == "a test"


async def _claims_are_fenced(world: World, *old: Any) -> None:
    for claim in old:
        report = {"claim_epoch": claim["claim_epoch"]}
        path = world.operation(claim["operation"]["id"], "heartbeat")
        check_problem(await world.controller.post(path, report), 409, "stale_claim")
    again = await world.claim()
    assert again["claim_epoch"] > max(claim["claim_epoch"] for claim in old), "hosts refuse what they have seen"
    assert await grant(world, again)


async def _the_machine_gets_its_trust_again(world: World, node: str, machine: Api, generation: int) -> None:
    """It comes with a generation the store has never heard of, and lets no account in; the store says that blue holds it."""
    path = f"/v1/nodes/{node}"
    assert (await world.boss.get(path)).json()["state"] == "unknown"
    facts = {"hostname": "node-2", "cpus": 4, "memory_mb": 8000}
    told = (await poll(node, machine, generation, generation, facts=facts)).json()["trust"]
    assert (await world.boss.get(path)).json()["state"] == "unknown", "heard, and not yet believed"
    assert told["generation"] > generation
    assert told["principals"] == {"root": [world.blue_allocation]}
    await applied(node, machine, told["generation"])
    assert (await world.boss.get(path)).json()["state"] == "ready"


async def test_the_answer_to_a_request_of_before_the_backup_is_still_known(
    world: World, place: Path, tmp_path: Path, store_folder: Path, clock: MovableClock
) -> None:
    path, body = f"/v1/tenants/{world.tenant}/projects", {"slug": "kept", "name": "Kept"}
    first = await world.boss.ok(path, body, key="a-key-from-before-the-backup")
    backup = copied(world, tmp_path)
    async with restored(world, backup, place, store_folder, clock) as again:
        again.boss = await sign_in(again.api, "boss@acme.example")
        repeated = await again.boss.post(path, body, key="a-key-from-before-the-backup")
        assert (repeated.headers["idempotency-replayed"], repeated.json()) == ("true", first)


async def test_what_one_database_held_can_be_brought_into_another_kind_and_back(
    world: World, place: Path, tmp_path: Path, store_folder: Path
) -> None:
    await world.running()
    before = _numberless(world.platform)
    backup = copied(world, tmp_path)
    url = f"sqlite:///{tmp_path}/other.db"
    brought_back(backup, place, store_folder, url)
    db = Database(url)
    world.platform.db, kept = db, world.platform.db
    assert _numberless(world.platform) == before
    second = tmp_path / "second"
    copies.write(db, tmp_path / "none", second, 0)
    brought_back(second, place, store_folder)
    world.platform.db = kept
    db.close()
    with open_platform(place, MovableClock()) as platform:
        assert _numberless(platform) == before


def _numberless(platform: Platform) -> dict[str, list[str]]:
    """All rows but the number that ids are counted by: PostgreSQL has a sequence for it."""
    found = dump(platform, without=set())
    found["store_facts"] = [row for row in found["store_facts"] if "id_number" not in row]
    return found


async def _new_project(world: World, slug: str) -> str:
    return (await world.boss.ok(f"/v1/tenants/{world.tenant}/projects", {"slug": slug, "name": "P"}))["id"]


@pytest.mark.parametrize("behind_s", [0, 365 * 86_400])
async def test_new_ids_sort_after_those_of_the_backup_and_those_that_were_lost(
    world: World, place: Path, tmp_path: Path, store_folder: Path, clock: MovableClock, behind_s: int
) -> None:
    """With a clock that is behind, only those of the backup are known."""
    kept = await _new_project(world, "kept")
    backup = copied(world, tmp_path)
    lost = await _new_project(world, "lost")
    brought_back(backup, place, store_folder)
    with open_platform(place, clock) as platform:
        platform.db.write_now(lambda tx: restore_fencing.fence(tx, "a test", clock() - behind_s * 1000))
        async with caller(platform) as api:
            again = world.through(api.http)
            again.boss = await sign_in(again.api, "boss@acme.example")
            new = await _new_project(again, "new")
    assert kept < new
    assert behind_s or lost < new


@pytest.mark.timeout(1800)
async def test_the_commands_bring_a_store_back_that_serves(
    store: Store, world: World, tmp_path: Path, place: Path
) -> None:
    first = tmp_path / "first"
    first.mkdir()
    backup = tmp_path / "monday"
    with serving(store, first) as served:
        done = served.run("backup", str(backup))
        assert done.returncode == 0, done.stderr
        assert "master key separately" in done.stdout
    there = Served(place, free_port())
    shutil.copy2(first / "master.key", place)
    done = there.run("restore", str(backup))
    assert done.returncode == 0, done.stderr
    assert "3 machines" in done.stdout
    try:
        there.start()
        async with calling(there, world) as remote:
            assert (await (await sign_in(remote.api, ADMIN)).get("/v1/tenants")).json()["items"]
    finally:
        there.stop()
    remove_store(first)


async def test_the_trail_is_whole_and_newer_checkpoints_tell_what_is_lost(
    world: World, place: Path, tmp_path: Path, store_folder: Path, clock: MovableClock
) -> None:
    backup = copied(world, tmp_path)
    await world.deploy()
    anchoring.anchor_due(world.platform, everything=True)
    brought_back(backup, place, store_folder)
    with open_platform(place, clock) as platform:
        assert platform.checkpoints is not None
        assert verify(platform.db.read_now, platform.checkpoints, world.tenant).ok
        shutil.copytree(store_folder / "checkpoints", place / "checkpoints", dirs_exist_ok=True)
        lost = verify(platform.db.read_now, platform.checkpoints, world.tenant)
        assert not lost.ok
        assert lost.broken
        platform.checkpoints.set_aside(world.tenant, clock())
        platform.db.write_now(lambda tx: begin_again(tx, world.tenant, "restored on purpose", clock()))
        anchoring.anchor_due(platform, everything=True)
        assert verify(platform.db.read_now, platform.checkpoints, world.tenant).ok


async def test_a_store_that_is_used_is_not_overwritten(
    world: World, tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    backup, before = copied(world, tmp_path), dump(world.platform, without=set())
    monkeypatch.setenv("GPUAAS_CORE_DATA", str(store_folder))
    monkeypatch.setenv("GPUAAS_CORE_DATABASE", database_url(store_folder))
    with pytest.raises(SystemExit):
        commands.restore(backup)
    assert "The database is not empty" in capsys.readouterr().err
    assert dump(world.platform, without=set()) == before


async def test_what_cannot_be_brought_back_is_said_before_a_row_is_written(
    world: World, place: Path, tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    backup = copied(world, tmp_path)
    monkeypatch.setenv("GPUAAS_CORE_DATA", str(place))
    monkeypatch.setenv("GPUAAS_CORE_DATABASE", database_url(place))

    def refused(folder: Path = backup) -> str:
        with pytest.raises(SystemExit) as ended:
            commands.restore(folder)
        assert ended.value.code == 2
        return capsys.readouterr().err

    assert "No master key" in refused()
    (place / "master.key").write_bytes((store_folder / "master.key").read_bytes())
    (place / "master.key").chmod(0o600)
    manifest = json.loads((backup / "manifest.json").read_text())
    (backup / "manifest.json").write_text(json.dumps(manifest | {"schema": "9999_later"}))
    assert "newer schema" in refused()
    (backup / "manifest.json").write_text(json.dumps(manifest))
    events = backup / "tables" / "events.jsonl.gz"
    whole = events.read_bytes()
    events.write_bytes(whole[:-1])
    assert "events.jsonl.gz of the backup is missing or modified" in refused()
    events.write_bytes(whole)
    assert "is not a backup" in refused(tmp_path)
    with pytest.raises(copies.NotPossible, match="exists already"):
        copied(world, tmp_path)
    (place / "master.key").unlink()
    Embedded.in_file(place / "master.key")
    assert "does not open this backup" in refused()
    db = Database(database_url(place))
    try:
        with db.engine.connect() as tx:
            assert not db.engine.dialect.has_table(tx, "tenants")
    finally:
        db.close()
    assert rows(world.platform, "select 1 as it from tenants")
