"""The core's own store and what is registered: content arrives whole or not at all, and never changes its name."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.artifacts.fetch import Reader
from gpuaas_core.artifacts.store import Bounds, Store
from gpuaas_core.artifacts.uploads import sweep
from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.kit.db import metadata

from core.tests.http.test_bad_input import check_problem
from core.tests.support.artifact_scene import OCTETS, digest, project, push, register, tenant
from core.tests.support.fixtures import World, add_user, sign_in
from core.tests.support.store_rows import dump, one, rows

BUILTIN = "asrc_builtin"


def files(world: World) -> list[Path]:
    folder: Path = world.platform.services.get(Reader).store.folder
    return [path for path in folder.rglob("*") if path.is_file()]


def bound(world: World, **bounds: int) -> None:
    world.platform.services.get(Reader).store.bounds = Bounds(**bounds)


async def in_pieces(content: bytes, size: int = 65_536) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def test_what_is_pushed_and_registered_is_there_under_its_digest(world: World) -> None:
    content = os.urandom(3 * 1024 * 1024)  # three times what any other body may have
    made = await register(world, content, media_type="application/vnd.debian.binary-package")
    assert (made["sha256"], made["size"], made["state"]) == (digest(content), len(content), "registered")
    assert (made["tier"], made["source"]) == ("tenant", "builtin")
    (file,) = files(world)
    assert file.read_bytes() == content
    assert file.name == digest(content)
    shown = (await world.boss.get(tenant(world, "artifacts", made["id"]))).json()
    assert shown == made
    seen = (await world.viewer.get(project(world, "artifacts"))).json()["items"]
    assert [(a["id"], a["allowed"]) for a in seen] == [(made["id"], True)]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_push_that_is_not_what_it_says_leaves_nothing(world: World, announced: bool) -> None:
    before = dump(world.platform)
    content = b"x" * 200_000
    body: Any = content if announced else in_pieces(content)
    answer = await push(world.boss, tenant(world), body, sha256="0" * 64)
    check_problem(answer, 422, "artifact_upload_wrong")
    assert digest(content) in answer.json()["detail"]
    assert files(world) == []
    assert dump(world.platform) == before


@pytest.mark.parametrize("announced", [True, False])
async def test_only_a_push_may_be_large_and_it_has_a_bound_of_its_own(world: World, announced: bool) -> None:
    bound(world, largest=2_000_000)
    content = b"x" * 2_000_001
    body: Any = content if announced else in_pieces(content)
    check_problem(await push(world.boss, tenant(world), body, digest(content)), 413, "body_too_large")
    assert files(world) == []
    near = [f"artifact-store/{digest(content)}/more", "artifacts", "artifact-storeX/a"]
    for path in near:
        answer = await world.boss.call("PUT", tenant(world, path), content=content, headers=dict(OCTETS))
        check_problem(answer, 413, "body_too_large")
        assert "1048576" in answer.json()["detail"]
    answer = await world.boss.call("POST", tenant(world, f"artifact-store/{digest(content)}"), content=content)
    check_problem(answer, 413, "body_too_large")


async def test_a_stranger_pushes_nothing_and_nothing_is_read_from_them(world: World) -> None:
    for caller, status in ((world.api.as_(None), 401), (world.viewer, 404), (world.machine, 404)):
        answer = await push(caller, tenant(world), b"x" * 100_000)
        assert answer.status_code == status
    assert not world.platform.services.get(Reader).store.folder.exists()
    check_problem(await push(world.boss, "/v1", b"x"), 403, "permission_denied")


async def test_a_tenants_storage_has_a_quota_that_two_at_once_cannot_overrun(world: World) -> None:
    bound(world, quota=250_000)
    contents = [bytes([number]) * 100_000 for number in range(4)]
    answers = await asyncio.gather(*(push(world.boss, tenant(world), in_pieces(c), digest(c)) for c in contents))
    assert sorted(a.status_code for a in answers) == [201, 201, 409, 409]
    refused = next(a for a in answers if a.status_code == 409)
    check_problem(refused, 409, "artifact_quota_exceeded")
    assert refused.json()["storage"]["quota_bytes"] == 250_000
    assert one(world.platform, "select sum(size) from artifact_blobs") == 200_000
    kept = next(c for c, a in zip(contents, answers, strict=True) if a.status_code == 201)
    again = await push(world.boss, tenant(world), kept)
    assert again.json()["used_bytes"] == 200_000, "the same content is counted once"
    announced = await push(world.boss, tenant(world), b"y" * 100_000)
    check_problem(announced, 409, "artifact_quota_exceeded")
    assert (await push(world.admin, "/v1", b"z" * 300_000)).json()["quota_bytes"] is None


async def test_the_same_content_of_two_tenants_lies_there_once_and_belongs_to_both(world: World) -> None:
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    boss = await _boss_of(world, other)
    content = b"shared" * 1000
    await register(world, content)
    said = {"name": "stolen", "version": "1", "sha256": digest(content)}
    refused = await boss.post(f"/v1/tenants/{other}/artifacts", said)
    check_problem(refused, 422, "artifact_not_uploaded")  # knowing a digest is not having the content
    assert (await push(boss, f"/v1/tenants/{other}", content)).status_code == 201
    await boss.ok(f"/v1/tenants/{other}/artifacts", said)
    assert len(files(world)) == 1
    assert one(world.platform, "select count(*) from artifact_blobs") == 2


async def _boss_of(world: World, other: str) -> Any:
    person = {"email": "boss@other.example", "name": "Other boss", "password": "correct horse battery"}
    user = (await world.admin.ok(f"/v1/tenants/{other}/users", person))["id"]
    await world.admin.ok(f"/v1/tenants/{other}/role-bindings", {"principal_id": user, "role": "tenant_admin"})
    return await sign_in(world.api, "boss@other.example")


async def test_a_version_is_never_given_to_other_content(world: World) -> None:
    first = await register(world, b"one")
    await push(world.boss, tenant(world), b"two")
    again = {"name": "packages", "version": "1.0", "sha256": digest(b"two")}
    check_problem(await world.boss.post(tenant(world, "artifacts"), again), 409, "artifact_version_taken")
    gone = await world.boss.ok(tenant(world, "artifacts", first["id"], "withdraw"), {"reason": "broken"})
    assert (gone["state"], gone["withdraw_reason"], gone["available_actions"]) == ("withdrawn", "broken", [])
    check_problem(await world.boss.post(tenant(world, "artifacts"), again), 409, "artifact_version_taken")
    twice = await world.boss.post(tenant(world, "artifacts", first["id"], "withdraw"), {})
    check_problem(twice, 409, "wrong_state")


async def test_content_goes_when_nothing_refers_to_it_and_not_before(world: World) -> None:
    first, second = await register(world, b"kept", "one"), await register(world, b"kept", "two")
    await world.boss.ok(tenant(world, "artifacts", first["id"], "withdraw"), {})
    assert one(world.platform, "select count(*) from artifact_blobs") == 1
    _age(world)
    assert await sweep(world.platform) == 0
    await world.boss.ok(tenant(world, "artifacts", second["id"], "withdraw"), {})
    assert one(world.platform, "select count(*) from artifact_blobs") == 0, "the quota is free at once"
    assert await sweep(world.platform) == 1
    assert files(world) == []


async def test_what_was_pushed_and_never_registered_is_forgotten_after_a_day(world: World) -> None:
    await push(world.boss, tenant(world), b"forgotten")
    await register(world, b"needed")
    (world.platform.services.get(Reader).store.folder / "incoming" / "torn").write_bytes(b"half")
    tidy(world.platform, world.platform.clock() + 23 * 3600_000)
    assert one(world.platform, "select count(*) from artifact_blobs") == 2
    assert await sweep(world.platform) == 0, "what just arrived stays"
    tidy(world.platform, world.platform.clock() + 25 * 3600_000)
    assert [r["sha256"] for r in rows(world.platform, "select sha256 from artifact_blobs")] == [digest(b"needed")]
    _age(world)
    assert await sweep(world.platform) == 2
    assert [f.name for f in files(world)] == [digest(b"needed")]


def _age(world: World) -> None:
    for file in files(world):
        os.utime(file, (time.time() - 7200,) * 2)


def test_the_cache_keeps_what_was_used_last(tmp_path: Path) -> None:
    store = Store(tmp_path, Bounds(cache=250))
    names = []
    for number in range(3):
        if number == 2:
            file = store.opened("cache/asrc_a", names[0], 100)  # used again: the other one goes
            assert file
            file.close()
        with store.receiving(1000) as incoming:
            incoming.write(bytes([number]) * 100)
            names.append(store.keep(incoming, "cache/asrc_a"))
        time.sleep(0.01)
    there = [next(tmp_path.glob(f"cache/asrc_a/??/{name}"), None) is not None for name in names]
    assert there == [True, False, True]
    assert store.opened("cache/asrc_b", names[0], 100) is None, "what one source gave is not what another has"


def test_a_changed_file_is_never_handed_out(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.receiving(1000) as incoming:
        incoming.write(b"right")
        name = store.keep(incoming, "cache/asrc_a")
    path = next(tmp_path.glob("cache/*/??/*"))
    path.write_bytes(b"wrong")
    assert store.opened("cache/asrc_a", name, 5) is None
    assert not path.exists(), "it can be read from its source again"


def test_nothing_of_a_torn_write_is_left(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def torn() -> None:
        with store.receiving(1000) as incoming:
            incoming.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        torn()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize(
    "said",
    [
        {"path": "a"},
        {"repository": "a", "manifest": "sha256:" + "0" * 64},
        {"sha256": None},
        {"size": 7},
        {"source_id": "asrc_none"},
    ],
)
async def test_a_registration_that_does_not_fit_its_source_is_refused(world: World, said: dict[str, Any]) -> None:
    await push(world.boss, tenant(world), b"{}")
    body = {"name": "packages", "version": "1", "sha256": digest(b"{}")} | said
    answer = await world.boss.post(tenant(world, "artifacts"), {k: v for k, v in body.items() if v is not None})
    assert answer.status_code == (404 if "source_id" in said else 422), answer.text


# --- sources


async def test_a_tenants_source_has_a_name_no_other_tenant_and_not_the_platform_can_take(world: World) -> None:
    body = {"name": "models", "kind": "blob", "base_url": "https://8.8.8.8/models"}
    theirs = await world.boss.ok(tenant(world, "artifact-sources"), body)
    assert (theirs["policy_name"], theirs["tier"], theirs["state"]) == ("acme.models", "tenant", "enabled")
    ours = await world.admin.ok("/v1/artifact-sources", body)
    assert (ours["policy_name"], ours["tier"]) == ("models", "platform")
    taken = await world.boss.post(tenant(world, "artifact-sources"), body)
    check_problem(taken, 409, "artifact_source_name_taken")
    seen = (await world.boss.get(tenant(world, "artifact-sources"))).json()["items"]
    assert {s["policy_name"] for s in seen} == {"builtin", "models", "acme.models"}
    platform = (await world.admin.get("/v1/artifact-sources")).json()["items"]
    assert {s["policy_name"] for s in platform} == {"builtin", "models"}, "the platform does not look into tenants"
    answer = await world.boss.post(tenant(world, "artifact-sources", ours["id"], "disable"), {})
    check_problem(answer, 404, "not_found")


@pytest.mark.parametrize(
    "url",
    [
        "https://a@8.8.8.8/",
        "https://127.0.0.1/",
        "https://localhost.localdomain./",
        "http://8.8.8.8/",
        "https://0x7f.1/",
    ],
)
async def test_a_trick_is_refused_when_a_source_is_made(world: World, url: str) -> None:
    body = {"name": "models", "kind": "blob", "base_url": url}
    check_problem(await world.boss.post(tenant(world, "artifact-sources"), body), 422, "artifact_address_refused")
    check_problem(await world.admin.post("/v1/artifact-sources", body), 422, "artifact_address_refused")


async def test_a_name_that_leads_home_is_refused_when_a_source_is_made(world: World) -> None:
    body = {"name": "models", "kind": "blob", "base_url": "https://localhost"}
    check_problem(await world.boss.post(tenant(world, "artifact-sources"), body), 422, "artifact_address_refused")
    near = body | {"base_url": "http://localhost:5000", "port": 5000, "private_addresses": True}
    unknown = await world.boss.post(tenant(world, "artifact-sources"), near)
    check_problem(unknown, 422, "invalid_request")  # only the platform marks a source as private
    assert (await world.admin.ok("/v1/artifact-sources", near))["private_addresses"] is True


CANARY = "canary-8b1f"


async def test_a_sources_credential_goes_in_and_never_comes_out(world: World) -> None:
    secret = {"kind": "basic", "username": "core", "password": CANARY}
    body = {"name": "models", "kind": "blob", "base_url": "https://8.8.8.8/", "credential": secret}
    made = await world.boss.ok(tenant(world, "artifact-sources"), body)
    assert made["credential_kind"] == "basic"
    changed = await world.boss.ok(
        tenant(world, "artifact-sources", made["id"], "credential"),
        {"credential": {"kind": "bearer", "token": CANARY * 2}},
    )
    assert changed["credential_kind"] == "bearer"
    for answer in (made, changed, (await world.boss.get(tenant(world, "artifact-sources"))).json()):
        assert CANARY not in str(answer)
    assert CANARY not in str(dump(world.platform, without=set()))
    odd = await world.boss.post(
        tenant(world, "artifact-sources"), body | {"name": "other", "credential": secret | {"token": CANARY}}
    )
    check_problem(odd, 422, "invalid_request")
    assert CANARY not in odd.text
    gone = await world.boss.ok(tenant(world, "artifact-sources", made["id"], "remove"), {})
    assert (gone["state"], gone["credential_kind"]) == ("removed", None)
    sealed = rows(world.platform, "select sealed_credential from artifact_sources where id = :id", id=made["id"])
    assert sealed == [{"sealed_credential": None}]


async def test_a_credential_moved_to_another_address_does_not_open(world: World) -> None:
    from gpuaas_core.artifacts import sources
    from gpuaas_core.custody.key_providers.port import CustodyFailed
    from sqlalchemy import select, text

    body = {"name": "models", "kind": "blob", "base_url": "https://8.8.8.8/a"}
    body["credential"] = {"kind": "bearer", "token": CANARY}  # type: ignore[assignment]
    made = await world.boss.ok(tenant(world, "artifact-sources"), body)
    table = metadata.tables["artifact_sources"]
    db, vault = world.platform.db, world.platform.vault

    def opened(tx: Any) -> Any:
        return sources.opened_credential(tx, vault, tx.execute(select(table).where(table.c.id == made["id"])).one())

    assert db.read_now(opened) == {"kind": "bearer", "token": CANARY}
    moved = text("update artifact_sources set base_url = 'https://9.9.9.9/a' where id = :id")
    db.write_now(lambda tx: tx.execute(moved, {"id": made["id"]}))
    with pytest.raises(CustodyFailed):
        db.read_now(opened)


async def test_a_source_that_is_needed_is_not_removed_but_can_be_disabled(world: World) -> None:
    body = {"name": "models", "kind": "blob", "base_url": "https://8.8.8.8/a"}
    source = await world.boss.ok(tenant(world, "artifact-sources"), body)
    said = {"name": "weights", "version": "1", "source_id": source["id"], "path": "w", "sha256": "0" * 64, "size": 1}
    made = await world.boss.ok(tenant(world, "artifacts"), said)
    where = tenant(world, "artifact-sources", source["id"])
    check_problem(await world.boss.post(f"{where}/remove", {}), 409, "artifact_source_in_use")
    assert (await world.boss.ok(f"{where}/disable", {"reason": "audit"}))["state_reason"] == "audit"
    check_problem(await world.boss.post(f"{where}/disable", {}), 409, "wrong_state")
    await world.boss.ok(tenant(world, "artifacts", made["id"], "withdraw"), {})
    await world.boss.ok(f"{where}/remove", {})
    store = await world.admin.post(f"/v1/artifact-sources/{BUILTIN}/remove", {})
    check_problem(store, 409, "artifact_source_in_use")


async def test_a_tenant_registers_from_a_source_of_the_platform_only_where_that_is_open(world: World) -> None:
    body = {"name": "models", "kind": "blob", "base_url": "https://8.8.8.8/a"}
    closed = await world.admin.ok("/v1/artifact-sources", body)
    wide = await world.admin.ok("/v1/artifact-sources", body | {"name": "public", "open_to_tenants": True})
    said = {"name": "weights", "version": "1", "path": "w", "sha256": "0" * 64, "size": 1}
    refused = await world.boss.post(tenant(world, "artifacts"), said | {"source_id": closed["id"]})
    check_problem(refused, 422, "invalid_request")
    await world.boss.ok(tenant(world, "artifacts"), said | {"source_id": wide["id"]})
    theirs = await world.admin.ok("/v1/artifacts", said | {"source_id": closed["id"], "version": "2"})
    seen = (await world.viewer.get(project(world, "artifacts", theirs["id"]))).json()
    assert (seen["tier"], seen["allowed"]) == ("platform", True)
    named = await world.viewer.ok(project(world, "artifacts", "resolve"), {"name": "weights", "version": "2"})
    assert named["id"] == theirs["id"]


async def test_what_another_tenant_has_does_not_exist(world: World) -> None:
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    boss = await _boss_of(world, other)
    made = await register(world)
    body = {"name": "models", "kind": "blob", "base_url": "https://8.8.8.8/a"}
    source = await world.boss.ok(tenant(world, "artifact-sources"), body)
    for path in (f"artifacts/{made['id']}", f"artifact-sources/{source['id']}"):
        assert (await boss.get(f"/v1/tenants/{other}/{path}")).status_code == 404
        assert (await boss.get(tenant(world, path))).status_code == 404
    assert (await world.admin.get(f"/v1/artifacts/{made['id']}")).status_code == 404
    assert (await boss.get(f"/v1/tenants/{other}/artifacts")).json()["items"] == []
    lead, _ = await add_user(world, "lead@acme.example", "project_admin", project=world.red)
    answer = await lead.post(tenant(world, "artifacts", made["id"], "withdraw"), {})
    assert answer.status_code == 404
