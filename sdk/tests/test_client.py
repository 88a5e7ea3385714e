"""The client against a real socket: keys, retries, problems, tokens, correlation."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

import msgspec
import pytest
from gpuaas_sdk import AsyncClient, Bearer, Calls, Client, ServiceAccount, correlation, errors
from gpuaas_sdk.client.models import TokenView

from sdk.tests.support.fake_platform import Call, Cut, Handler, Platform, problem, wire

TENANT = {"id": "ten_1", "slug": "acme", "name": "Acme", "created_at": "2026-11-15T00:00:00.000Z"}
IDEMPOTENCY_KEY = r"[A-Za-z0-9._:-]{16,255}"


def failing_first(times: int, *, then: Any = TENANT, how: Any = None) -> Handler:
    """A handler that fails a few times before it answers."""
    left = [times]

    def handler(call: Call) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            if how is None:
                raise Cut
            return how
        return 200, then

    return handler


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("how", [None, problem(503, "unavailable"), (502, b"<html>bad gateway</html>"), (504, b"")])
def test_a_retry_carries_the_same_idempotency_key(platform: Platform, client: Client, how: object) -> None:
    platform.on("POST", "/v1/tenants", failing_first(2, how=how))
    assert client.create_tenant(slug="acme", name="Acme").id == "ten_1"
    keys = [c.key for c in platform.seen("POST", "/v1/tenants")]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert re.fullmatch(IDEMPOTENCY_KEY, keys[0])


@pytest.mark.usefixtures("short_waits")
def test_the_first_try_still_being_in_progress_is_waited_for(platform: Platform, client: Client) -> None:
    in_flight = problem(409, "idempotency_in_flight", retryable=True)
    platform.on("POST", "/v1/tenants", failing_first(2, how=in_flight))
    assert client.create_tenant(slug="acme", name="Acme").id == "ten_1"


def test_two_calls_have_two_keys_but_a_request_sent_twice_has_one(platform: Platform, client: Client) -> None:
    platform.on("POST", "/v1/tenants", lambda _: (201, TENANT))
    client.create_tenant(slug="acme", name="Acme")
    request = Calls.create_tenant.request(slug="acme", name="Acme")
    client.send(request)
    client.send(request)
    first, second, third = [c.key for c in platform.seen("POST", "/v1/tenants")]
    assert first != second == third


@pytest.mark.usefixtures("short_waits")
def test_retries_are_bounded_and_end_in_the_error(platform: Platform, client: Client) -> None:
    platform.on("GET", "/v1/tenants/ten_1", lambda _: problem(503, "unavailable", retryable=True))
    with pytest.raises(errors.Unavailable):
        client.get_tenant("ten_1")
    assert len(platform.calls) == 5


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422, 429, 500])
def test_an_answer_that_is_final_is_not_retried(platform: Platform, client: Client, status: int) -> None:
    platform.on("POST", "/v1/tenants", lambda _: problem(status, "some_code"))
    with pytest.raises(errors.ApiError):
        client.create_tenant(slug="acme", name="Acme")
    assert len(platform.calls) == 1


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "idempotency_key_missing", errors.Invalid),
        (401, "unauthenticated", errors.Unauthenticated),
        (403, "permission_denied", errors.Denied),
        (404, "not_found", errors.NotFound),
        (409, "allocation_in_use", errors.Conflict),
        (409, "stale_claim", errors.StaleClaim),
        (410, "cursor_expired", errors.Gone),
        (412, "precondition_failed", errors.Conflict),
        (422, "inputs_invalid", errors.Invalid),
        (429, "too_many", errors.RateLimited),
        (500, "internal_error", errors.Unavailable),
        (418, "a_code_of_the_future", errors.Invalid),
    ],
)
def test_a_problem_document_becomes_its_exception(
    platform: Platform, client: Client, status: int, code: str, kind: type[errors.ApiError]
) -> None:
    fields = [{"pointer": "/inputs/gpus", "message": "must be a number"}]
    platform.on("GET", "/v1/apps/x", lambda _: problem(status, code, errors=fields, new_member="ignored"))
    with pytest.raises(errors.ApiError) as caught:
        client.get_app("x")
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, error.way_out) == (status, code, "Do otherwise.")
    assert error.correlation_id == "cor-server"
    assert error.errors[0].pointer == "/inputs/gpus"
    assert str(error) == f"It is {code}."


@pytest.mark.usefixtures("short_waits")
def test_no_server_is_a_connection_failure_with_a_way_out() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(url) as client, pytest.raises(errors.ConnectionFailed) as caught:
        client.whoami()
    assert url in str(caught.value)
    assert caught.value.way_out


def test_an_answer_of_something_else_is_said_to_be_so(platform: Platform, client: Client) -> None:
    platform.on("GET", "/v1/whoami", lambda _: (200, b"<html>Welcome to nginx</html>"))
    with pytest.raises(errors.BadAnswer):
        client.whoami()


def test_a_redirect_is_not_followed_with_a_token(platform: Platform, client: Client) -> None:
    platform.on("GET", "/v1/whoami", lambda _: (302, b"", {"Location": "http://elsewhere.invalid/"}))
    with pytest.raises(errors.BadAnswer, match="redirect"):
        client.whoami()


def test_what_is_not_an_address_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="http"):
        Client("gpu.example")


def test_an_empty_id_never_reaches_the_wire(platform: Platform, client: Client) -> None:
    with pytest.raises(ValueError, match="empty"):
        client.get_instance("prj_1", "")
    assert platform.calls == []


def test_an_id_cannot_leave_its_place_in_the_path(platform: Platform, client: Client) -> None:
    with pytest.raises(errors.NotFound):
        client.get_tenant("../apps?x=1")
    assert platform.calls[0].path == "/v1/tenants/..%2Fapps%3Fx%3D1"


def test_the_correlation_id_in_force_is_sent_and_otherwise_a_new_one(platform: Platform, client: Client) -> None:
    platform.on("GET", "/v1/tenants/ten_1", lambda _: (200, TENANT))
    with correlation("cor-from-outside"):
        client.get_tenant("ten_1")
    client.get_tenant("ten_1")
    first, second = [c.headers["x-correlation-id"] for c in platform.calls]
    assert first == "cor-from-outside"
    assert second != first
    assert len(second) >= 8


def test_lists_are_read_to_the_last_page(platform: Platform, client: Client) -> None:
    pages = {"": (["ten_1", "ten_2"], "c2"), "c2": (["ten_3"], None)}

    def listing(call: Call):
        ids, following = pages[call.query.get("cursor", "")]
        return 200, {"items": [{**TENANT, "id": i} for i in ids], "next_cursor": following}

    platform.on("GET", "/v1/tenants", listing)
    assert [t.id for t in client.every(Calls.list_tenants)] == ["ten_1", "ten_2", "ten_3"]


async def test_the_async_client_speaks_the_same_calls(platform: Platform) -> None:
    platform.on("POST", "/v1/tenants", lambda _: (201, TENANT))
    platform.on("GET", "/v1/tenants", lambda _: (200, {"items": [TENANT], "next_cursor": None}))
    async with AsyncClient(platform.url, Bearer("tok")) as client:
        assert (await client.create_tenant(slug="acme", name="Acme")).slug == "acme"
        assert [t.id async for t in client.every(Calls.list_tenants)] == ["ten_1"]
    assert platform.calls[0].headers["authorization"] == "Bearer tok"
    assert platform.calls[0].body == {"slug": "acme", "name": "Acme"}


# --- tokens of service accounts


class TokenDesk:
    """Hands out numbered tokens and accepts only the newest."""

    def __init__(self, platform: Platform, expires_in: int = 900) -> None:
        self.issued, self.assertions, self._expires_in, self.valid = 0, [], expires_in, True
        platform.on("POST", "/v1/token", self.issue)
        platform.on("GET", "/v1/tenants/ten_1", self.tenant)

    def issue(self, call: Call):
        if not self.valid:
            return problem(401, "unauthenticated")
        self.issued += 1
        self.assertions.append(call.body)
        return 200, wire(TokenView, access_token=f"t{self.issued}", expires_in=self._expires_in)

    def tenant(self, call: Call):
        good = call.headers.get("authorization") == f"Bearer t{self.issued}"
        return (200, TENANT) if good else problem(401, "token_expired")


@pytest.fixture
def account(platform: Platform) -> ServiceAccount:
    return ServiceAccount.generate(project_id="prj_1", api=platform.url).registered("sa_1")


def test_a_token_is_fetched_once_and_used_until_it_is_due(platform: Platform, account: ServiceAccount) -> None:
    desk = TokenDesk(platform)
    with Client.for_service_account(account) as client:
        client.get_tenant("ten_1")
        client.get_tenant("ten_1")
    assert desk.issued == 1
    assert "idempotency-key" not in platform.calls[0].headers


def test_a_token_is_renewed_before_it_expires(
    platform: Platform, account: ServiceAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, clock = TokenDesk(platform, expires_in=900), [1000.0]
    monkeypatch.setattr("gpuaas_sdk.client.auth.now", lambda: clock[0])
    monkeypatch.setattr("gpuaas_sdk.client.transport.now", lambda: clock[0])
    with Client.for_service_account(account) as client:
        client.get_tenant("ten_1")
        clock[0] += 839
        client.get_tenant("ten_1")
        assert desk.issued == 1
        clock[0] += 2
        client.get_tenant("ten_1")
    assert desk.issued == 2


async def test_a_refused_token_is_renewed_once_and_the_call_repeated(
    platform: Platform, account: ServiceAccount
) -> None:
    desk = TokenDesk(platform)
    async with AsyncClient.for_service_account(account) as client:
        await client.get_tenant("ten_1")
        desk.issued += 1  # the platform no longer knows t1
        assert (await client.get_tenant("ten_1")).id == "ten_1"
    assert desk.issued == 3


def test_a_disabled_service_account_is_unauthenticated_and_does_not_hammer(
    platform: Platform, account: ServiceAccount
) -> None:
    TokenDesk(platform).valid = False
    with Client.for_service_account(account) as client, pytest.raises(errors.Unauthenticated):
        client.get_tenant("ten_1")
    assert len(platform.calls) == 2


def test_a_persons_refused_token_is_reported_not_renewed(platform: Platform, client: Client) -> None:
    platform.on("GET", "/v1/whoami", lambda _: problem(401, "token_expired"))
    with pytest.raises(errors.Unauthenticated):
        client.whoami()
    assert len(platform.calls) == 1


def test_an_assertion_is_signed_short_lived_and_unique(account: ServiceAccount) -> None:
    from joserfc import jwt
    from joserfc.jwk import OKPKey

    public: Any = account.public_jwk
    key = OKPKey.import_key(public)
    first, second = (jwt.decode(account.assertion(), key, algorithms=["Ed25519"]).claims for _ in range(2))
    assert first["iss"] == first["sub"] == "sa_1"
    assert first["aud"] == "gpuaas"
    assert 0 < first["exp"] - first["iat"] <= 60
    assert first["jti"] != second["jti"]


def test_an_identity_file_is_private_and_reads_back(account: ServiceAccount, tmp_path) -> None:
    path = tmp_path / "identity.json"
    account.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert ServiceAccount.load(path) == account
    assert "d" not in account.public_jwk
    assert set(json.loads(path.read_bytes())) >= {"id", "private_jwk", "project_id", "api"}


# --- models


def test_unknown_fields_and_unknown_states_never_break_a_client(platform: Platform, client: Client) -> None:
    strange = {**platform.instance(), "state": "hibernating", "brand_new": [1, 2, 3]}
    platform.on("GET", "/v1/projects/prj_1/instances/inst_1", lambda _: (200, strange))
    assert client.get_instance("prj_1", "inst_1").state == "hibernating"


def test_a_model_can_be_written_as_json_again(platform: Platform, client: Client) -> None:
    instance = client.get_instance("prj_1", "inst_1")
    assert json.loads(msgspec.json.encode(instance))["members"][0]["component_key"] == "controller"
