"""A marker in every place where a secret goes in; the whole journey with its failures; then nothing has one anywhere."""

import base64
import json
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from gpuaas_core.kit.db import metadata
from gpuaas_lab.canaries import Canaries, forms, process, under
from joserfc.jwk import OKPKey
from sqlalchemy import select

from core.tests.credentials.test_credentials import written
from core.tests.support import postgres
from core.tests.support.fixtures import ADMIN, Api, Store, World, assertion, enrol_body, looking, remove_store
from core.tests.support.served import Served, serving
from core.tests.support.store_rows import store_files

KEEPS_THE_KEY = {"master.key"}


@dataclass
class Journey:
    world: World
    served: Served
    canaries: Canaries
    answers: list[tuple[str, bytes]] = field(default_factory=list)
    told: set[str] = field(default_factory=set)  # tokens: their owner is told them in an answer, once

    def token(self, name: str, value: str) -> str:
        self.told.add(name)
        return self.canaries.watch(name, value)

    def tenant(self, more: str) -> str:
        return f"/v1/tenants/{self.world.tenant}/{more}"


@pytest.fixture
async def journey(store: Store, tmp_path: Path) -> AsyncIterator[Journey]:
    folder = tmp_path / "core"
    folder.mkdir()
    with serving(store, folder) as served:
        answers: list[tuple[str, bytes]] = []

        async def keep(answer: httpx2.Response) -> None:
            head = repr(answer.headers.raw).encode()
            request = answer.request
            answers.append((f"{request.method} {request.url.path} ({answer.status_code})", head + await answer.aread()))

        async with httpx2.AsyncClient(base_url=served.url, timeout=30, event_hooks={"response": [keep]}) as http:
            yield Journey(store.world.through(http), served, Canaries(), answers)
    remove_store(folder)


async def people(j: Journey) -> None:
    world, c = j.world, j.canaries
    done = j.served.run("admin", "second@example.com")
    assert done.returncode == 2, "no password was sent"
    j.answers.append(("gpuaas-core admin", (done.stdout + done.stderr).encode()))
    for email, password in ((ADMIN, "wrong"), ("unknown@example.com", "of an unknown user")):
        said = {"email": email, "password": c.new(f"password {password}")}
        assert (await world.api.post("/v1/sign-in", said)).status_code == 401
        assert (await world.api.post("/v1/auth/session", said)).status_code in (401, 403)
    assert (
        await world.api.post("/v1/sign-in", {"email": ADMIN, "password": c.new("too long") * 20})
    ).status_code == 422
    person = {"email": "canary@acme.example", "name": "Canary", "password": c.new("first password")}
    await world.boss.ok(j.tenant("users"), person)
    assert (await world.boss.post(j.tenant("users"), person)).status_code == 409
    assert (await world.boss.post(j.tenant("users"), person | {"extra": c.new("extra field")})).status_code == 422
    given = await world.api.ok("/v1/sign-in", {"email": person["email"], "password": person["password"]})
    canary = world.api.as_(j.token("access token", given["access_token"]))
    change = {"current_password": person["password"], "new_password": c.new("second password")}
    typo = change | {"current_password": c.new("typo")}
    assert (await canary.post("/v1/whoami/password", typo)).status_code == 422
    await canary.ok("/v1/whoami/password", change)
    guest = {"email": "guest@acme.example", "name": "Guest", "role": "project_member", "project_id": world.red}
    token = j.token("invitation", (await world.boss.ok(j.tenant("invitations"), guest))["token"])
    wrong = {"token": token, "password": c.new("short")[:5]}
    assert (await world.api.post("/v1/invitations/accept", wrong)).status_code == 422
    await world.api.ok("/v1/invitations/accept", wrong | {"password": c.new("guest password")})
    for header in (f"Bearer {c.new('unknown token', 'hex')}", f"Basic {c.new('basic', 'hex')}"):
        answer = await world.api.http.get("/v1/whoami", headers={"Authorization": header})
        assert answer.status_code == 401


async def providers(j: Journey) -> None:
    world, c = j.world, j.canaries
    body = {"name": "Acme", "issuer": "https://accounts.example", "client_id": "us"}
    made = await world.boss.ok(j.tenant("identity-providers"), body | {"client_secret": c.new("client secret", "hex")})
    path = j.tenant(f"identity-providers/{made['id']}/update")
    await world.boss.ok(path, {"client_secret": c.new("second client secret", "hex")})
    refused = body | {"issuer": "http://plain.example", "client_secret": c.new("refused client secret", "hex")}
    assert (await world.boss.post(j.tenant("identity-providers"), refused)).status_code == 422
    code = {"code": c.new("authorization code", "hex"), "state": c.new("state", "hex")}
    answer = await world.api.http.get("/v1/auth/oidc/callback", params=code)
    assert answer.status_code >= 300
    body = {"code": c.new("sign-in code"), "verifier": c.new("verifier") * 2}
    assert (await world.api.post("/v1/auth/oidc/token", body)).status_code in (401, 422)


async def machines(j: Journey) -> None:
    world, c = j.world, j.canaries
    key = OKPKey.generate_key("Ed25519")
    c.watch("private key of a machine", str(key.as_dict(private=True)["d"]))
    token = j.token("enrolment", (await world.boss.ok(j.tenant("enrolments"), {"node_name": "canary"}))["token"])
    body = enrol_body(token, "canary", key)
    assert (await world.api.post("/v1/enrol", body | {"ssh_host_public_key": "none"})).status_code == 422
    await world.api.ok("/v1/enrol", body)
    again = enrol_body(token, "canary", OKPKey.generate_key("Ed25519"))
    assert (await world.api.post("/v1/enrol", again)).status_code == 401
    assert (await world.api.post("/v1/enrol", body | {"token": c.new("wrong enrolment")})).status_code == 401
    whole = key.as_dict(private=True)
    assert (await world.api.post("/v1/enrol", body | {"public_jwk": whole})).status_code in (401, 422)


async def accounts(j: Journey) -> Api:
    """A service account; its private half is sent by mistake, too."""
    world, c = j.world, j.canaries
    key = OKPKey.generate_key("Ed25519")
    c.watch("private key of an account", str(key.as_dict(private=True)["d"]))
    path = f"/v1/projects/{world.red}/service-accounts"
    mistake = {"name": "ctl", "public_jwk": key.as_dict(private=True)}
    assert (await world.boss.post(path, mistake)).status_code == 422
    account = (await world.boss.ok(path, {"name": "ctl", "public_jwk": key.as_dict(private=False)}))["id"]
    kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    form = {"grant_type": "client_credentials", "client_assertion_type": kind}
    signed = c.watch("client assertion", assertion(key, account, now=j.world.now()))
    answer = await world.api.http.post("/v1/token", data=form | {"client_assertion": signed})
    assert answer.status_code == 200, answer.text
    again = await world.api.http.post("/v1/token", data=form | {"client_assertion": signed})
    assert again.status_code in (400, 401)
    wrong = await world.api.http.post("/v1/token", data=form | {"client_assertion": c.new("no assertion")})
    assert wrong.status_code in (400, 401, 422)
    return world.api.as_(j.token("account's token", answer.json()["access_token"]))


async def secrets(j: Journey, controller: Api) -> None:
    world, c = j.world, j.canaries
    accepted = await world.deploy(name="canary")
    claim = await world.claim(by=controller)
    instance, operation = accepted["instance"], world.operation(claim["operation"]["id"])
    path = world.of(instance, "secrets")
    await world.boss.ok(path, {"name": "db_password", "value": c.new("runtime secret")})
    for wrong in ({"name": "No Name"}, {"name": "x", "alphabet": "none"}, {"name": ["db_password"]}):
        assert (await world.boss.post(path, wrong | {"value": c.new("refused secret")})).status_code == 422
    assert (await world.viewer.post(path, {"name": "mine", "value": c.new("forbidden secret")})).status_code == 403
    broken = b'{"name": "x", "value": "' + c.new("broken body", "hex").encode()
    headers = {"Authorization": f"Bearer {world.boss.token}", "Idempotency-Key": "a-key-for-a-broken-body"}
    assert (await world.api.http.post(path, content=broken, headers=headers)).status_code in (400, 422)
    asked = {"claim_epoch": claim["claim_epoch"], "name": "db_password"}
    for status in (200, 410):
        assert (await controller.post(f"{operation}/secrets/deliver", asked)).status_code == status
    pair = ed25519.Ed25519PrivateKey.generate()
    c.watch("seed of an imported key", pair.private_bytes_raw())
    c.watch("body of an imported key", "".join(written(pair).splitlines()[1:-1])[120:240])
    imports = f"/v1/projects/{world.red}/credentials/import"
    kept = await world.boss.ok(imports, {"name": "storage", "private_key": written(pair)})
    assert (await world.boss.post(imports, {"name": "storage", "private_key": written(pair)})).status_code == 409
    halved = written(pair)[:-60] + c.new("broken key", "hex")
    assert (await world.boss.post(imports, {"name": "half", "private_key": halved})).status_code == 422
    await world.boss.ok(f"/v1/projects/{world.red}/credentials/{kept['id']}/bind", {"instance_id": instance["id"]})
    redeem = {"claim_epoch": claim["claim_epoch"], "name": "storage"}
    for status in (200, 410):
        assert (await controller.post(f"{operation}/credentials/redeem", redeem)).status_code == status
    error = {"code": "it_broke", "message": "It broke.", "way_out": "Mend it.", "retryable": True}
    await controller.ok(f"{operation}/fail", {"claim_epoch": claim["claim_epoch"], "error": error})


def in_the_store(served: Served) -> Iterator[tuple[str, bytes]]:
    with looking(served.folder) as tx:
        for table in metadata.sorted_tables:
            rows = tx.execute(select(table)).all()
            whole = [value for row in rows for value in row if isinstance(value, bytes)]
            yield f"the table {table.name}", "\n".join(repr(tuple(row)) for row in rows).encode() + b"".join(whole)
    for file in store_files(served.folder):
        yield file.name, file.read_bytes()
    if postgres.CHOSEN:  # the write-ahead log and the server's own log are of all databases
        yield from under(postgres.folder() / "data" / "pg_wal")
        yield "log of the server", (postgres.folder() / "log").read_bytes()


@pytest.mark.timeout(1800)
async def test_no_secret_that_goes_in_is_found_anywhere(journey: Journey, tmp_path: Path) -> None:
    j, world = journey, journey.world
    await people(j)
    await providers(j)
    await machines(j)
    await secrets(j, await accounts(j))
    j.canaries.watch("master key", (j.served.folder / "master.key").read_bytes().strip()[-40:])
    token_file = tmp_path / "bao-token"
    token_file.write_text(j.canaries.new("token of the custody server"))
    j.served.settings |= {
        "GPUAAS_CORE_OPENBAO_ADDRESS": "http://127.0.0.1:9",
        "GPUAAS_CORE_OPENBAO_TOKEN_FILE": str(token_file),
    }
    moved = j.served.run("custody", "move", "openbao")
    assert moved.returncode != 0, "there is no server"
    j.answers.append(("gpuaas-core custody", (moved.stdout + moved.stderr).encode()))
    backup = tmp_path / "backup"
    assert j.served.run("backup", str(backup)).returncode == 0
    j.served.kill()
    j.served.executed = True  # what a process was started with is searched, too
    j.served.start()
    for path in (j.tenant("events?limit=1000"), j.tenant("audit?limit=200"), f"/v1/projects/{world.red}/instances"):
        answer = await world.boss.get(path)
        assert answer.status_code == 200
    for one in (await world.boss.get(j.tenant("audit?limit=200"))).json()["items"][-5:]:
        assert (await world.boss.get(f"/v1/triage/{one['correlation_id']}")).status_code == 200
    assert j.served.process is not None
    everywhere = [
        *in_the_store(j.served),
        *under(j.served.folder, but=KEEPS_THE_KEY),
        *under(backup),
        *process(j.served.process.pid),
    ]
    assert not j.canaries.hits(everywhere)
    assert not j.canaries.hits(j.answers, but=j.told)
    assert len(j.canaries.marks) > 25
    seen = Canaries({"the instance's name": b"canary@acme.example"}).hits(everywhere)
    assert any("the table" in one for one in seen), "the sweep does not look where the rows are"
    assert any(b"/v1/sign-in" in content for name, content in everywhere if name.endswith("core.log"))


@pytest.mark.parametrize("form", forms(b'0123456789abcdef/+"\xc3\xa9'))
def test_a_planted_marker_is_found_in_every_form(form: str, tmp_path: Path) -> None:
    canaries = Canaries()
    mark = canaries.new("planted").encode()
    ways: dict[str, Any] = {
        "raw": lambda: mark,
        "hex": lambda: mark.hex().encode(),
        "HEX": lambda: mark.hex().upper().encode(),
        "url": lambda: urllib.parse.urlencode({"q": mark.decode()}, quote_via=urllib.parse.quote, safe="").encode(),
        "form": lambda: urllib.parse.urlencode({"q": mark.decode()}).encode(),
        "json": lambda: json.dumps([mark.decode()]).encode(),
    }
    shift = form.rpartition(" ")[2]
    if form.startswith("base64 "):
        planted = base64.b64encode(b"abc"[: int(shift)] + mark + b"and more")
    elif form.startswith("base64url"):
        planted = base64.urlsafe_b64encode(b"abc"[: int(shift)] + mark + b"and more")
    else:
        planted = ways[form]()
    (tmp_path / "log").write_bytes(b"before " + planted + b" after")
    assert [one for one in canaries.hits(under(tmp_path)) if f"({form})" in one]
    assert canaries.hits(under(tmp_path), but=["planted"]) == []
