"""Artifacts from real servers: an OCI registry, S3, plain HTTP. What is wrong there never lands on a machine."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.artifacts import content_routes
from gpuaas_core.artifacts.fetch import Reader
from gpuaas_core.artifacts.store import Bounds

from core.tests.artifacts.test_artifact_deliveries import held_machine
from core.tests.http.test_bad_input import check_problem
from core.tests.support.artifact_scene import at, deliver, digest, project
from core.tests.support.artifact_servers import (
    REGISTRY_TOKEN,
    S3,
    S3_KEYS,
    Liar,
    Registry,
    liar,
    random_content,
    registry,
    s3,
)
from core.tests.support.fixtures import World
from core.tests.support.store_rows import one

pytestmark = pytest.mark.any_store

TOKEN = {"kind": "bearer", "token": REGISTRY_TOKEN}


@pytest.fixture(scope="module")
def oci(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def server() -> Iterator[Liar]:
    with liar() as running:
        yield running


async def source(world: World, url: str, port: int, kind: str = "blob", **more: Any) -> str:
    """Of the platform, since it stands on this machine."""
    body = {"name": "near", "kind": kind, "base_url": url, "port": port, "private_addresses": True} | more
    return (await world.admin.ok("/v1/artifact-sources", body))["id"]


async def registered(world: World, source_id: str, **said: Any) -> Any:
    return await world.admin.ok("/v1/artifacts", {"name": "thing", "version": "1", "source_id": source_id} | said)


def landed(world: World) -> list[Path]:
    return [path for path in world.platform.services.get(Reader).store.folder.rglob("*") if path.is_file()]


async def test_a_layer_of_a_registry_reaches_a_machine(world: World, oci: Registry) -> None:
    content = random_content(3_000_000)
    manifest, (layer, other) = oci.push("team/tools", content, b"another layer")
    near = await source(world, oci.url, oci.port, "oci", credential=TOKEN)
    said = {"name": "thing", "version": "1", "source_id": near, "repository": "team/tools", "manifest": manifest}
    ambiguous = await world.admin.post("/v1/artifacts", said)
    check_problem(ambiguous, 502, "artifact_source_refused")
    assert other in ambiguous.json()["detail"], "the layers there are are named"
    made = await world.admin.ok("/v1/artifacts", said | {"layer": layer})
    assert (made["sha256"], made["size"]) == (digest(content), len(content))
    assert made["media_type"] == "application/vnd.test.layer.v1.tar"
    assert landed(world) == [], "registering reads the manifest only"
    node, machine = await held_machine(world)
    answer = await machine.get(at(deliver(world, made["id"], node)))
    assert answer.content == content


async def test_a_registry_is_refused_without_its_credential_and_believed_only_by_digest(
    world: World, oci: Registry
) -> None:
    content = random_content(500_000)
    manifest, (layer,) = oci.push("team/spoilt", content)
    near = await source(world, oci.url, oci.port, "oci")
    said = {"name": "thing", "version": "1", "source_id": near, "repository": "team/spoilt", "manifest": manifest}
    check_problem(await world.admin.post("/v1/artifacts", said), 502, "artifact_source_refused")
    await world.admin.ok(f"/v1/artifact-sources/{near}/credential", {"credential": TOKEN})
    made = await world.admin.ok("/v1/artifacts", said)
    assert made["reference"]["layer"] == layer, "there is only one"
    oci.spoil(layer, b"x" * len(content))
    node, machine = await held_machine(world)
    check_problem(await machine.get(at(deliver(world, made["id"], node))), 502, "artifact_content_wrong")
    assert landed(world) == []
    oci.spoil(manifest, b"{}")
    wrong = await world.admin.post("/v1/artifacts", said | {"version": "2"})
    assert wrong.json()["code"] in ("artifact_content_wrong", "artifact_source_away"), wrong.text


async def test_an_object_of_s3_reaches_a_machine_and_a_changed_one_does_not(world: World, bucket: S3) -> None:
    content = random_content(2_000_000)
    name = "llama/7+b~1.bin"
    assert bucket.put(name, content)
    near = await source(world, bucket.url, bucket.port, credential=S3_KEYS)
    made = await registered(world, near, path=name)
    assert (made["sha256"], made["size"]) == (digest(content), len(content)), "read when it was registered"
    node, machine = await held_machine(world)
    assert (await machine.get(at(deliver(world, made["id"], node)))).content == content
    for path in landed(world):
        path.unlink()  # as if it had been evicted: it is read again
    assert (await machine.get(at(deliver(world, made["id"], node)))).content == content
    for path in landed(world):
        path.unlink()
    assert bucket.put(name, random_content(2_000_000))
    check_problem(await machine.get(at(deliver(world, made["id"], node))), 502, "artifact_content_wrong")
    assert bucket.put(name, content[:-1])
    check_problem(await machine.get(at(deliver(world, made["id"], node))), 502, "artifact_content_wrong")
    assert landed(world) == []
    missing = await world.admin.post(
        "/v1/artifacts", {"name": "missing", "version": "1", "source_id": near, "path": "no"}
    )
    check_problem(missing, 502, "artifact_source_refused")


async def test_s3_with_a_wrong_key_is_a_clear_refusal(world: World, bucket: S3) -> None:
    assert bucket.put("secret.bin", b"secret")
    near = await source(world, bucket.url, bucket.port, credential=S3_KEYS | {"secret_access_key": "canary-wrong-key"})
    said = {"name": "thing", "version": "1", "source_id": near, "path": "secret.bin"}
    answer = await world.admin.post("/v1/artifacts", said)
    check_problem(answer, 502, "artifact_source_refused")
    assert "credential" in answer.json()["detail"]
    assert "canary-wrong-key" not in answer.text


# --- a server that lies


async def promised(world: World, server: Liar, content: bytes, **more: Any) -> tuple[Any, Any, str]:
    """A delivery of what the server is said to have, its machine, and the source."""
    near = await source(world, server.url, server.port, **more)
    made = await registered(world, near, path="f", sha256=digest(content), size=len(content))
    node, machine = await held_machine(world)
    return deliver(world, made["id"], node), machine, near


GOOD = b"good content" * 100
LIES: dict[str, tuple[dict[str, Any], int, str]] = {
    "other bytes": ({"body": b"evil content" * 100}, 502, "artifact_content_wrong"),
    "more bytes": ({"body": GOOD + b"!"}, 502, "artifact_content_wrong"),
    "fewer bytes": ({"body": GOOD[:-1]}, 502, "artifact_content_wrong"),
    "a promise it does not keep": ({"body": GOOD[:600], "Content_Length": str(len(GOOD))}, 503, "artifact_source_away"),
    "an error": ({"status": 500}, 503, "artifact_source_away"),
    "too busy": ({"status": 429}, 503, "artifact_source_away"),
    "not there": ({"status": 404}, 502, "artifact_source_refused"),
    "not for us": ({"status": 403}, 502, "artifact_source_refused"),
    "a part": ({"status": 206, "body": GOOD}, 502, "artifact_source_refused"),
    "another host": ({"status": 302, "Location": "http://127.0.0.2:1/f"}, 422, "artifact_address_refused"),
    "the metadata of a cloud": (
        {"status": 302, "Location": "http://169.254.169.254/"},
        422,
        "artifact_address_refused",
    ),
    "a file": ({"status": 302, "Location": "file:///etc/passwd"}, 422, "artifact_address_refused"),
    "too many times": ({"status": 302, "Location": "/f"}, 502, "artifact_source_refused"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_of_the_source_never_lands(world: World, server: Liar, lie: str) -> None:
    words, status, code = LIES[lie]
    delivery, machine, _ = await promised(world, server, GOOD)
    server.says("/f", **words)
    answer = await machine.get(at(delivery))
    check_problem(answer, status, code)
    assert answer.json()["retryable"] is (status == 503)
    assert landed(world) == []
    assert one(world.platform, "select fetches from artifact_deliveries") == 0
    server.says("/f", body=GOOD)
    assert (await machine.get(at(delivery))).content == GOOD, "what was wrong at the source is right again: it lands"


async def test_a_redirect_inside_the_host_is_followed_with_the_credential(world: World, server: Liar) -> None:
    delivery, machine, _ = await promised(
        world, server, GOOD, credential={"kind": "basic", "username": "u", "password": "p"}
    )
    server.says("/f", 307, Location="/elsewhere?token=1")
    server.says("/elsewhere?token=1", body=GOOD)
    assert (await machine.get(at(delivery))).content == GOOD
    assert [path for path, _ in server.asked] == ["/f", "/elsewhere?token=1"]
    assert {headers["Authorization"] for _, headers in server.asked} == {"Basic dTpw"}


async def test_a_source_that_is_away_is_said_to_be_and_may_come_back(world: World, server: Liar) -> None:
    delivery, machine, _ = await promised(world, server, GOOD)
    server.server.shutdown()
    server.server.server_close()
    answer = await machine.get(at(delivery))
    check_problem(answer, 503, "artifact_source_away")
    assert answer.json()["retryable"]
    assert "retry-after" in answer.headers


async def test_a_source_disabled_between_promise_and_fetch_is_not_even_asked(world: World, server: Liar) -> None:
    delivery, machine, near = await promised(world, server, GOOD)
    server.says("/f", body=GOOD)
    await world.admin.ok(f"/v1/artifact-sources/{near}/disable", {"reason": "incident"})
    check_problem(await machine.get(at(delivery)), 409, "artifact_source_disabled")
    assert server.asked == []


async def test_a_source_disabled_while_it_is_being_read_delivers_nothing(world: World, server: Liar) -> None:
    """The content is here by then; it still does not go out."""
    delivery, machine, near = await promised(world, server, GOOD)
    reading, disabled = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    server.says("/f", body=GOOD)
    before = server.answers["/f"]

    def slow(request: BaseHTTPRequestHandler) -> None:
        loop.call_soon_threadsafe(reading.set)
        disabled.wait(60)
        before(request)

    server.answers["/f"] = slow
    asked = asyncio.create_task(machine.get(at(delivery)))
    await asyncio.wait_for(reading.wait(), 60)
    await world.admin.ok(f"/v1/artifact-sources/{near}/disable", {})
    disabled.set()
    check_problem(await asked, 409, "artifact_source_disabled")
    assert one(world.platform, "select fetches from artifact_deliveries") == 0


async def test_many_machines_at_once_read_the_source_once_and_none_waits_for_ever(
    world: World, server: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery, machine, _ = await promised(world, server, GOOD)
    server.says("/f", body=GOOD)
    before, refused = server.answers["/f"], threading.Event()

    def slow(request: BaseHTTPRequestHandler) -> None:
        refused.wait(60)
        before(request)

    server.answers["/f"] = slow
    monkeypatch.setattr(content_routes, "WAIT_S", 0.1)
    early = await machine.get(at(delivery))
    check_problem(early, 503, "artifact_on_its_way")
    assert early.headers["retry-after"] == "2"
    monkeypatch.setattr(content_routes, "WAIT_S", 60)
    refused.set()
    answers = await asyncio.gather(*(machine.get(at(delivery)) for _ in range(5)))
    assert [a.content for a in answers] == [GOOD] * 5
    assert len(server.asked) == 1, "what was begun went on, and all waited for it"


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"{",
        b'{"layers": 1}',
        b'{"layers": [{"digest": "sha256:x", "size": 1, "mediaType": "a"}]}',
        b"[" * 100_000,
    ],
)
async def test_an_unreadable_manifest_is_a_clear_refusal(world: World, server: Liar, manifest: bytes) -> None:
    near = await source(world, server.url, server.port, "oci")
    server.says(f"/v2/a/manifests/sha256%3A{digest(manifest)}", body=manifest)
    said = {
        "name": "thing",
        "version": "1",
        "source_id": near,
        "repository": "a",
        "manifest": f"sha256:{digest(manifest)}",
    }
    check_problem(await world.admin.post("/v1/artifacts", said), 502, "artifact_source_refused")


async def test_what_is_larger_than_an_artifact_may_be_is_not_registered(world: World, server: Liar) -> None:
    near = await source(world, server.url, server.port)
    server.says("/f", body=GOOD)
    world.platform.services.get(Reader).store.bounds = Bounds(largest=1000)
    said = {"name": "thing", "version": "1", "source_id": near, "path": "f"}
    told = await world.admin.post("/v1/artifacts", said | {"sha256": digest(GOOD), "size": len(GOOD)})
    check_problem(told, 422, "invalid_request")
    check_problem(await world.admin.post("/v1/artifacts", said), 502, "artifact_content_wrong")
    assert landed(world) == []


async def test_policy_is_asked_before_a_source_is_read_to_register(world: World, server: Liar) -> None:
    near = await source(world, server.url, server.port)
    body = {"rules": {"artifact_sources": {"deny": ["near"]}}}
    await world.admin.call("PUT", "/v1/policies/no-near", headers={"If-None-Match": "*"}, json=body)
    said = {"name": "thing", "version": "1", "source_id": near, "path": "f"}
    check_problem(await world.admin.post("/v1/artifacts", said), 403, "policy_denied")
    assert server.asked == []


async def test_a_tenants_source_that_begins_to_lead_home_is_refused_at_fetch(
    world: World, server: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was harmless when the source was made; now it leads to this machine."""
    from gpuaas_core.artifacts import http_source

    body = {"name": "away", "kind": "blob", "base_url": "https://models.invalid/a"}
    away = (await world.boss.ok(f"/v1/tenants/{world.tenant}/artifact-sources", body))["id"]
    said = {"name": "thing", "version": "1", "source_id": away, "path": "f", "sha256": digest(GOOD), "size": len(GOOD)}
    made = await world.boss.ok(f"/v1/tenants/{world.tenant}/artifacts", said)
    node, machine = await held_machine(world)
    home = [(2, 1, 6, "", ("127.0.0.1", server.port))]
    monkeypatch.setattr(http_source.socket, "getaddrinfo", lambda *_, **__: home)
    check_problem(await machine.get(at(deliver(world, made["id"], node))), 422, "artifact_address_refused")
    assert server.asked == []
    resolved = await world.viewer.ok(project(world, "artifacts", "resolve"), {"artifact_id": made["id"]})
    assert resolved["allowed"], "policy has nothing against it; the address has"
