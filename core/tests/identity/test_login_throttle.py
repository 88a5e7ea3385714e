"""How often a password may be tried: counted per account and address, slower over all addresses, the same for e-mails
without an account. Time is the test's clock, and a wait is written down instead of waited for."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from gpuaas_core.api.app import guarded
from gpuaas_core.http.call import Platform
from gpuaas_core.iam.tables import principals
from gpuaas_core.identity import login_throttle, passwords
from gpuaas_core.identity.errors import TooManyGuesses
from gpuaas_core.identity.login_throttle import (
    LONGEST_WAIT_S,
    MOST,
    MOST_ADDRESSES,
    REMEMBERED_MS,
    WINDOW_MS,
    Throttle,
    network_of,
    wait_for,
)
from gpuaas_core.identity.tables import sign_in_addresses, wrong_guesses
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, insert, select

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import ADMIN, PASSWORD, Api, MovableClock, World, _app
from core.tests.support.store_rows import one, rows

BOSS, UNKNOWN = "boss@acme.example", "unknown@acme.example"
OWN = "mallory knows this one"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that tries were made to wait, in order."""
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(login_throttle, "pause", pause)
    return waited


@contextlib.asynccontextmanager
async def at(platform: Platform, address: str) -> AsyncIterator[Api]:
    """A caller with an address of its own."""
    app = _app()
    app.state.platform = platform
    transport = httpx2.ASGITransport(app=guarded(app), raise_app_exceptions=False, client=(address, 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://core") as http:
        yield Api(http)


async def _try(world: World, address: str, email: str = BOSS, password: str = "a guess", **more: Any) -> Any:
    async with at(world.platform, address) as api:
        return await api.post("/v1/sign-in", {"email": email, "password": password, **more})


async def _twin(world: World, email: str, slug: str = "evil") -> str:
    """An account with the same e-mail in another tenant, whose password its administrator knows."""
    tenant = (await world.admin.ok("/v1/tenants", {"slug": slug, "name": slug}))["id"]
    person = {"email": email, "name": "Mallory", "password": OWN}
    return (await world.admin.ok(f"/v1/tenants/{tenant}/users", person))["id"]


# --- one address


@pytest.mark.parametrize("tenant", [{}, {"tenant": "acme"}])
async def test_an_own_account_with_another_persons_e_mail_does_not_switch_the_limit_off(
    world: World, monkeypatch: pytest.MonkeyPatch, tenant: dict[str, str]
) -> None:
    await _twin(world, ADMIN if not tenant else BOSS)
    email = BOSS if tenant else ADMIN
    theirs = "select password_hash from principals where email = :e and name != 'Mallory'"
    victim = one(world.platform, theirs, e=email)
    compared = 0
    before = passwords.password_matches

    def matches(stored: str | None, given: str) -> bool:
        nonlocal compared
        compared += stored == victim
        return before(stored, given)

    monkeypatch.setattr(passwords, "password_matches", matches)
    for number in range(60):
        if number % 10 == 9:
            assert (await _try(world, "10.0.0.1", email, OWN)).status_code == 200
        else:
            await _try(world, "10.0.0.1", email, f"guess-{number}", **tenant)
    assert compared <= MOST
    answer = await _try(world, "10.0.0.1", email, PASSWORD, **tenant)
    assert answer.status_code in (401, 429), "the right password, guessed at last, opens nothing here"
    assert (await _try(world, "10.0.0.2", email, PASSWORD, **tenant)).status_code == 200, "its owner is elsewhere"


async def test_a_success_forgets_the_wrong_passwords_of_its_own_account_only(world: World) -> None:
    await _twin(world, BOSS)
    for number in range(MOST - 1):
        check_problem(await _try(world, "10.0.0.1", password=f"guess-{number}"), 401, "sign_in_refused")
    assert (await _try(world, "10.0.0.1", password=OWN)).status_code == 200
    counts = sorted(
        row["tries"] for row in rows(world.platform, "select * from wrong_guesses where bucket like 'account:%'")
    )
    assert counts == [MOST], "the other account got one more wrong password, and keeps its count"


@pytest.mark.parametrize(
    "network", [("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::2"), ("::ffff:10.0.0.1", "10.0.0.1")]
)
async def test_a_network_of_one_holder_is_one_address(world: World, network: tuple[str, str]) -> None:
    for number in range(MOST):
        await _try(world, network[number % 2], password=f"guess-{number}")
    check_problem(await _try(world, network[0], password=PASSWORD), 429, "too_many_guesses")
    check_problem(await _try(world, network[1], password=PASSWORD), 429, "too_many_guesses")
    assert (await _try(world, "10.9.9.9", password=PASSWORD)).status_code == 200


def test_an_address_is_an_ipv4_address_or_an_ipv6_network() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff") != network_of("2001:db8:0:1::1")
    assert network_of("10.0.0.1") != network_of("10.0.0.2")
    assert (network_of(None), network_of("testclient")) == ("", "testclient")


# --- all addresses


async def test_many_addresses_wait_longer_and_longer_and_are_never_refused(world: World, waits: list[float]) -> None:
    for number in range(60):
        check_problem(await _try(world, f"10.0.{number}.1"), 401, "sign_in_refused")
    assert waits == [wait_for(number) for number in range(MOST + 1, 61)]
    assert waits == sorted(waits)
    assert (waits[0] > 0, waits[-1]) == (True, LONGEST_WAIT_S)
    assert (await _try(world, "10.1.0.1", password=PASSWORD)).status_code == 200, (
        "a right password is slow, not refused"
    )
    assert waits[-1] == LONGEST_WAIT_S


async def test_an_account_does_not_wait_where_it_signed_in_before(
    world: World, waits: list[float], clock: MovableClock
) -> None:
    assert (await _try(world, "10.0.0.1", password=PASSWORD)).status_code == 200
    for number in range(20):
        await _try(world, f"10.0.{number}.9")
    waits.clear()
    assert (await _try(world, "10.0.0.1", password=PASSWORD)).status_code == 200
    assert waits == []
    assert (await _try(world, "10.0.0.2", password=PASSWORD)).status_code == 200
    assert len(waits) == 1
    clock.forward(REMEMBERED_MS / 1000 + 1)
    for number in range(20):
        await _try(world, f"10.0.{number}.9")
    waits.clear()
    await _try(world, "10.0.0.1", password=PASSWORD)
    assert len(waits) == 1, "an address is remembered for a time"


async def test_another_accounts_known_address_gives_no_tries_without_a_wait(world: World, waits: list[float]) -> None:
    await _twin(world, BOSS)
    addresses = [f"10.0.{number}.1" for number in range(20)]
    for address in addresses:
        assert (await _try(world, address, password=OWN)).status_code == 200
    for address in addresses:
        await _try(world, address)
    waits.clear()
    for address in addresses:
        check_problem(await _try(world, address, password=PASSWORD), 401, "sign_in_refused")
    assert waits == [], "only the account that is known there was compared"


async def test_tries_at_once_from_many_addresses_wait_as_if_one_followed_the_other(
    world: World, waits: list[float]
) -> None:
    await asyncio.gather(*(_try(world, f"10.0.{number}.1") for number in range(25)))
    assert sorted(waits) == [wait_for(number) for number in range(MOST + 1, 26)]


async def test_a_waiting_request_holds_no_transaction_and_no_thread(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote: list[int] = []

    async def pause(_seconds: float) -> None:
        wrote.append(await world.platform.db.write(lambda tx: len(tx.execute(select(wrong_guesses)).all())))

    monkeypatch.setattr(login_throttle, "pause", pause)
    for number in range(12):
        await _try(world, f"10.0.{number}.1")
    assert len(wrote) == 2
    assert min(wrote) > 0, "the try was counted before the wait"


async def test_a_password_changed_during_the_wait_is_the_one_that_counts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(11):
        await _try(world, f"10.0.{number}.1")

    async def pause(_seconds: float) -> None:
        await world.boss.ok("/v1/whoami/password", {"current_password": PASSWORD, "new_password": "a newer password"})

    monkeypatch.setattr(login_throttle, "pause", pause)
    check_problem(await _try(world, "10.1.0.1", password=PASSWORD), 401, "sign_in_refused")


async def test_the_latest_addresses_of_an_account_are_remembered_and_no_more(world: World, clock: MovableClock) -> None:
    for number in range(MOST_ADDRESSES + 5):
        clock.forward(1)
        assert (await _try(world, f"10.0.{number}.1", password=PASSWORD)).status_code == 200
    mine = "select count(*) from sign_in_addresses where principal_id = :p"
    assert one(world.platform, mine, p=world.boss_id) == MOST_ADDRESSES
    clock.forward(REMEMBERED_MS / 1000 + 1)
    world.platform.db.write_now(lambda tx: login_throttle.forget_old(tx, clock()))
    assert one(world.platform, mine, p=world.boss_id) == 0
    assert "10.0." not in str(rows(world.platform, "select * from sign_in_addresses")), "no address is kept in clear"


# --- what an outsider can tell

tries = st.lists(
    st.tuples(st.sampled_from([None, "acme", "other"]), st.integers(0, 3), st.sampled_from([0, 0, 0, 200, 600])),
    max_size=40,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(made=tries)
async def test_an_e_mail_without_an_account_is_answered_like_one_with_an_account(
    world: World, clock: MovableClock, waits: list[float], made: list[tuple[str | None, int, int]]
) -> None:
    seen = {}
    for email in (BOSS, UNKNOWN):
        world.platform.db.write_now(lambda tx: tx.execute(delete(wrong_guesses)))
        waits.clear()
        codes = []
        for tenant, address, later in made:
            clock.forward(later)
            answer = await _try(world, f"10.0.0.{address}", email, **({"tenant": tenant} if tenant else {}))
            codes.append((answer.status_code, answer.json()["detail"].partition("Try again")[0]))
        seen[email] = (codes, [*waits])
    assert seen[BOSS] == seen[UNKNOWN]


@pytest.mark.parametrize(("named", "compared"), [({}, 2), ({"tenant": "acme"}, 1)])
async def test_a_try_compares_as_many_passwords_whatever_accounts_there_are(
    world: World, monkeypatch: pytest.MonkeyPatch, named: dict[str, str], compared: int
) -> None:
    await _twin(world, BOSS)
    calls: list[str] = []
    monkeypatch.setattr(passwords, "password_matches", lambda _stored, given: calls.append(given))
    for email in (BOSS, "viewer@acme.example", UNKNOWN):
        calls.clear()
        await _try(world, "10.0.0.1", email, **named)
        assert len(calls) == compared, email


async def test_accounts_made_with_a_persons_e_mail_do_not_shut_them_out(world: World) -> None:
    for slug in ("evil", "worse", "worst"):
        await _twin(world, ADMIN, slug)
    assert (await _try(world, "10.0.0.1", ADMIN, PASSWORD)).status_code == 200
    assert (await _try(world, "10.0.0.1", ADMIN, OWN, tenant="worst")).status_code == 200


async def test_made_up_e_mails_share_a_fixed_number_of_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_throttle, "ROWS", 8)
    for number in range(60):
        await _try(world, f"10.{number}.0.1", f"made-up-{number}@acme.example")
    assert 0 < one(world.platform, "select count(*) from wrong_guesses") <= 2 * 8


# --- the rules of counting, against a plain model of them

ACCOUNTS = ["usr_a", "usr_b"]
acts = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "both", "none"]),  # whose accounts the try is for
        st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
        st.sampled_from(["", "", "", "", "usr_a", "usr_b"]),  # whose password it is
        st.sampled_from([0, 0, 0, 1000, 400_000, WINDOW_MS]),
    ),
    max_size=60,
)
FOR = {"a": ["usr_a"], "b": ["usr_b"], "both": ACCOUNTS, "none": []}


class Model:
    """One e-mail with two accounts. Counts begin with a first try and end a quarter of an hour later."""

    def __init__(self) -> None:
        self.here: dict[str, tuple[int, int]] = {}
        self.account: dict[tuple[str, str], tuple[int, int]] = {}
        self.everywhere = (0, -WINDOW_MS)
        self.known: dict[str, set[str]] = defaultdict(set)

    @staticmethod
    def more(found: tuple[int, int] | None, now: int) -> tuple[int, int]:
        return (1, now) if found is None or found[1] <= now - WINDOW_MS else (found[0] + 1, found[1])

    def begin(self, accounts: list[str], address: str, now: int) -> tuple[set[str], float] | None:
        here = self.more(self.here.get(address), now)
        if here[0] > MOST:
            return None
        self.here[address] = here
        count = self.more(self.everywhere, now)[0]
        self.everywhere = (count, now)
        wait = wait_for(count)
        if wait and (known := [one for one in accounts if address in self.known[one]]):
            accounts, wait = known, 0.0
        compared = set()
        for one_ in accounts:
            tried = self.account[one_, address] = self.more(self.account.get((one_, address)), now)
            if tried[0] <= MOST:
                compared.add(one_)
        return compared, wait

    def succeed(self, account: str, address: str) -> None:
        self.here.pop(address, None)
        self.account.pop((account, address), None)
        self.everywhere = (max(0, self.everywhere[0] - 1), self.everywhere[1])
        self.known[account].add(address)


class Undone(Exception):
    pass


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(made=acts)
def test_the_store_counts_as_the_rules_say(platform: Platform, made: list[tuple[str, str, str, int]]) -> None:
    def follow(tx: Connection) -> None:
        for one_ in ACCOUNTS:
            tx.execute(insert(principals).values(id=one_, kind="user", name=one_, created_at=1))
        people = {row.id: row for row in tx.execute(select(principals).where(principals.c.id.in_(ACCOUNTS)))}
        throttle, model, now = Throttle(platform.vault.mac), Model(), 10**12
        for whose, address, password, later in made:
            now += later
            accounts = FOR[whose]
            expected = model.begin(accounts, address, now)
            if expected is None:
                with pytest.raises(TooManyGuesses), tx.begin_nested():
                    throttle.begin(tx, BOSS, [people[one_] for one_ in accounts], address, now)
                continue
            found = throttle.begin(tx, BOSS, [people[one_] for one_ in accounts], address, now)
            assert (set(found.compared), found.wait_s) == expected
            if password in found.compared:
                throttle.succeed(tx, found, password, now)
                model.succeed(password, address)
        assert {row.principal_id for row in tx.execute(select(sign_in_addresses))} >= {
            one_ for one_, where in model.known.items() if where
        }
        raise Undone

    with pytest.raises(Undone):
        platform.db.write_now(follow)
