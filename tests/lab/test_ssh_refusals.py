"""Who is refused by real sshd and by real clients, that revoking reaches open sessions, and that keys can be changed
while a cluster is being deployed. Odd certificates are signed with the tenant's own authority, out of the core's vault:
what is refused here is refused for exactly the one thing that is wrong with it.
"""

import asyncio
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import asyncssh
import msgspec
import pytest
from gpuaas_core.custody.key_providers import open_holder
from gpuaas_core.custody.vault import read_vault
from gpuaas_core.kit.db import Database
from gpuaas_core.machine_access import authorities
from gpuaas_sdk import AsyncClient, ServiceAccount
from gpuaas_sdk.client.errors import AccessRefused, HostIdentityWrong, MachineUnreachable
from gpuaas_sdk.client.models import GrantView
from gpuaas_sdk.machines.machine import Machine

from tests.support.lab_stack import Ground, promised, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(8)]

ENDS_WITHIN_S = 10
PATIENCE_S = 120  # with a busy machine: what is promised is compared with what it took


@dataclass
class Held:
    """An operation that this test has claimed, with the product's controller stopped."""

    ground: Ground
    account: ServiceAccount
    operation_id: str
    epoch: int
    instance_id: str

    @property
    def allocation(self) -> str:
        return self.ground.allocations["gpu1"]

    async def grant(self, key: Any, **more: Any) -> GrantView:
        asked = {"claim_epoch": self.epoch, "allocation_id": self.allocation}
        async with AsyncClient.for_service_account(self.account) as client:
            public = key.export_public_key().decode().strip()
            return await client.grant_access(
                self.ground.research, self.operation_id, ssh_public_key=public, **asked, **more
            )

    async def give_back(self) -> None:
        async with AsyncClient.for_service_account(self.account) as client:
            where = {"claim_epoch": self.epoch, "retry_in_s": 0, "reason": "the test is done with it"}
            await client.return_claim(self.ground.research, self.operation_id, **where)

    async def claim_again(self) -> None:
        async with AsyncClient.for_service_account(self.account) as client:
            claim = await client.claim(self.ground.research, app_slug="slurm", holder="a-test", wait_s=20)
            assert claim is not None
            self.epoch = claim.claim_epoch


def authority_key(ground: Ground, purpose: str = "user") -> Any:
    """The private half of what signs now. No route gives it: it is opened as the core opens it, on its own machine."""
    data = ground.stack.root / "core"
    db = Database(f"sqlite:///{data / 'core.db'}")
    try:
        vault = db.read_now(lambda tx: read_vault(tx, open_holder("embedded", os.environ, data)))
        row = db.read_now(lambda tx: authorities.signing(tx, ground.demo.tenant_id, purpose))
        bound = authorities.bound_to(row.tenant_id, purpose, row.number)
        private = db.read_now(lambda tx: vault.unseal(tx, row.tenant_id, row.sealed_private_key, bound))
    finally:
        db.close()
    return asyncssh.import_private_key(private)


@pytest.fixture(scope="module")
def held(ground: Ground) -> Iterator[Held]:
    ground.stack.folder.unwant("slurm-controller")
    wait_until(lambda: ground.stack.folder.process("slurm-controller") is None, 120, "the controller to stop")
    instance, _ = ground.deploy("refusals", "gpu1")
    account = msgspec.structs.replace(ServiceAccount.load(ground.demo.identities["research"]), api=ground.stack.api)

    async def claim() -> Any:
        async with AsyncClient.for_service_account(account) as client:
            return await client.claim(ground.research, app_slug="slurm", holder="a-test", wait_s=20)

    made = asyncio.run(claim())
    yield Held(ground, account, made.operation.id, made.claim_epoch, instance.id)
    ground.start_controller()
    ground.gone(ground.instance(instance.id))


class _NoOther:
    """Stands for the claim of a machine that has its certificate, and gets no other when the host refuses that."""

    def check(self) -> None: ...

    def expecting(self, seconds: float) -> Any:
        return nullcontext()

    async def grant(self, allocation_id: str, ssh_public_key: str) -> GrantView:
        raise AccessRefused("There is no other certificate in this test.")


@asynccontextmanager
async def entered(view: GrantView, key: Any, **changed: Any):
    """As controllers do it (the SDK's own client), with a certificate of our choice."""
    machine = Machine(_NoOther(), view.allocation_id)
    machine._key, machine._grant = key, msgspec.structs.replace(view, **changed)
    machine._grant_ends_at = float("inf")
    machine._connection = await machine._open(machine._grant)  # once: the answer of the host itself
    try:
        yield machine
    finally:
        await machine.close()


async def hostname(view: GrantView, key: Any, **changed: Any) -> str:
    async with entered(view, key, **changed) as machine:
        return (await machine.run(["hostname"])).stdout.strip()


@dataclass(frozen=True)
class Odd:
    """What is the same as in a good certificate, unless it is said otherwise."""

    held: Held
    key: Any
    authority: Any

    def certificate(self, **wrong: Any) -> str:
        now = int(time.time())
        wanted = {
            "principals": [self.held.allocation],
            "valid_after": now - 60,
            "valid_before": now + 300,
            "serial": secrets.randbits(62) + 1,
        } | wrong
        authority = wanted.pop("authority", self.authority)
        key_id = wanted.pop("key_id", f"{self.held.operation_id}/{self.held.epoch}")
        made = authority.generate_user_certificate(self.key, key_id, **wanted)
        return made.export_certificate().decode().strip()


@pytest.fixture
async def good(held: Held) -> tuple[Any, GrantView]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    return key, await held.grant(key)


@pytest.fixture
def odd(held: Held, good: tuple[Any, GrantView], ground: Ground) -> Odd:
    return Odd(held, good[0], authority_key(ground))


def address_of(ground: Ground, host: str) -> str:
    return next(one.address for one in ground.lab.status() if one.name == host)


async def test_what_the_matrix_starts_from_is_accepted(good: Any, odd: Odd) -> None:
    """Otherwise the refusals below would prove nothing."""
    key, view = good
    assert await hostname(view, key) == "gpu1"
    assert await hostname(view, key, certificate=odd.certificate()) == "gpu1"


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ("expired", lambda now: {"valid_before": now - 1}),
        ("not yet valid", lambda now: {"valid_after": now + 120}),
        ("another allocation's principal", lambda _: {"principals": ["alloc_of_another"]}),
        ("the login name as principal", lambda _: {"principals": ["root"]}),
        ("no principal at all", lambda _: {"principals": []}),
        ("another source address", lambda _: {"source_address": ["192.0.2.0/24"]}),
        ("another authority", lambda _: {"authority": asyncssh.generate_private_key("ssh-ed25519")}),
        ("a key id without an epoch", lambda _: {"key_id": "a-person"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_one_thing_wrong_and_the_host_refuses(good: Any, odd: Odd, what: str, wrong: Any) -> None:
    key, view = good
    with pytest.raises(AccessRefused):
        await hostname(view, key, certificate=odd.certificate(**wrong(int(time.time()))))


async def test_a_certificate_asked_for_with_addresses_works_from_those_only(held: Held, ground: Ground) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    assert await hostname(await held.grant(key, source_addresses=[f"{ground.gateway}/32"]), key) == "gpu1"
    with pytest.raises(AccessRefused):
        await hostname(await held.grant(key, source_addresses=["192.0.2.7"]), key)


async def test_another_nodes_host_certificate_is_refused(good: Any, ground: Ground) -> None:
    key, view = good
    with pytest.raises(HostIdentityWrong, match=ground.nodes["gpu2"]):
        await hostname(view, key, address=address_of(ground, "gpu2"))


async def test_a_plain_host_key_is_refused(good: Any, ground: Ground) -> None:
    """The right machine, the right key, but no certificate."""
    key, view = good
    plain = ["/usr/sbin/sshd", "-f", "/dev/null", "-p", "2222", "-o", "PidFile=/run/plain-sshd.pid"]
    ground.on_host("gpu1", *plain, "-h", "/etc/ssh/ssh_host_ed25519_key")
    try:
        with pytest.raises(HostIdentityWrong, match="bare key"):
            await hostname(view, key, port=2222)
    finally:
        ground.on_host("gpu1", "sh", "-c", "kill $(cat /run/plain-sshd.pid)")


async def test_another_machine_at_the_same_address_is_refused(good: Any, ground: Ground) -> None:
    """gpu1 loses its address and gpu2 has it: the client notices before it sends anything."""
    key, view = good
    ours, route = f"{view.address}/24", ground.on_host("gpu1", "ip", "-4", "route", "show", "default").strip()
    ground.on_host("gpu1", "ip", "address", "del", ours, "dev", "host0")
    try:
        ground.on_host("gpu2", "ip", "address", "add", ours, "dev", "host0")
        _forget_where(view.address)
        with pytest.raises(HostIdentityWrong, match=ground.nodes["gpu2"]):
            await hostname(view, key)
    finally:
        ground.lab.exec("gpu2", ["ip", "address", "del", ours, "dev", "host0"])
        ground.on_host("gpu1", "ip", "address", "add", ours, "dev", "host0")
        if route:
            ground.on_host("gpu1", "sh", "-c", f"ip route replace {route}")
        _forget_where(view.address)
    assert await hostname(view, key) == "gpu1"


def _forget_where(address: str) -> None:
    """As if time had passed: this machine asks the network again who has the address."""
    subprocess.run(["ip", "neighbour", "flush", "to", address], check=True, timeout=60)


async def test_revoking_ends_its_sessions_and_no_others_within_seconds(held: Held, ground: Ground, good: Any) -> None:
    key, view = good
    other_key = asyncssh.generate_private_key("ssh-ed25519")
    other = await held.grant(other_key)
    async with entered(view, key) as machine, entered(other, other_key) as bystander:
        working = asyncio.create_task(machine.run(["sh", "-c", "sleep 4711 & wait"], timeout=600))
        await asyncio.to_thread(
            wait_until, lambda: "sleep 4711" in _processes(ground), PATIENCE_S, "the command to run"
        )
        done = ground.cli("grant", "revoke", view.id, "--yes", "--reason", "a laptop was stolen", "-p", "research")
        revoked_at = time.monotonic()
        assert done.returncode == 0, done.stderr
        with pytest.raises(MachineUnreachable):  # not a command that failed: the claim's holder tries again
            await asyncio.wait_for(working, PATIENCE_S)
        over = lambda: "sleep 4711" not in _processes(ground)  # noqa: E731
        await asyncio.to_thread(wait_until, over, PATIENCE_S, "its processes to end")
        took = time.monotonic() - revoked_at
        assert took <= promised(ENDS_WITHIN_S), f"a revoked session lived on for {took:.1f} s"
        assert (await bystander.run(["hostname"])).stdout.strip() == "gpu1", "a session of another certificate ended"
    with pytest.raises(AccessRefused):
        await hostname(view, key)
    (shown,) = [g for g in ground.cli_json("grant", "list", "--revoked", "-p", "research") if g["id"] == view.id]
    assert shown["enforced"]
    print(f"revoked sessions ended after {took:.2f} s")


def _processes(ground: Ground) -> str:
    return ground.on_host("gpu1", "ps", "-eo", "args")


async def test_a_newer_claim_shuts_the_older_one_out(held: Held, ground: Ground, good: Any, odd: Odd) -> None:
    key, view = good
    old = f"{held.operation_id}/{held.epoch}"
    async with entered(view, key) as machine:
        await held.claim_again()
        claimed_at = time.monotonic()
        await asyncio.wait_for(_closed(machine), PATIENCE_S)
        assert time.monotonic() - claimed_at <= promised(ENDS_WITHIN_S)
    with pytest.raises(AccessRefused):
        await hostname(view, key)
    assert await hostname(view, key, certificate=odd.certificate()) == "gpu1", "the newer claim gets in"
    with pytest.raises(AccessRefused):  # never revoked: only the fence on the host knows that its epoch is over
        await hostname(view, key, certificate=odd.certificate(key_id=old))
    ground.on_host("gpu1", "systemctl", "restart", "gpuaas-agent")
    with pytest.raises(AccessRefused):
        await hostname(view, key, certificate=odd.certificate(key_id=old))


async def _closed(machine: Machine) -> None:
    assert machine._connection is not None
    await machine._connection.wait_closed()


def _states(ground: Ground, purpose: str) -> dict[int, str]:
    found = ground.demo.boss.list_ssh_authorities(ground.demo.tenant_id).items
    return {one.number: one.state for one in found if one.purpose == purpose}


def _settled(ground: Ground, purpose: str) -> bool:
    return set(_states(ground, purpose).values()) <= {"active", "retired"}


def _newest(ground: Ground, purpose: str) -> str:
    states = _states(ground, purpose)
    return states[max(states)]


async def test_both_user_authorities_open_during_the_overlap_and_only_the_new_one_after(
    held: Held, ground: Ground, good: Any, odd: Odd
) -> None:
    key, view = good
    ground.demo.boss.rotate_ssh_authority(ground.demo.tenant_id, purpose="user")
    await asyncio.to_thread(
        wait_until, lambda: _newest(ground, "user") == "active", PATIENCE_S, "every host to trust it"
    )
    new = replace(odd, authority=authority_key(ground))
    assert new.authority.public_data != odd.authority.public_data
    for one in (odd, new):
        assert await hostname(view, key, certificate=one.certificate()) == "gpu1"
    assert view.id in {
        grant for row in ground.demo.boss.list_ssh_authorities(ground.demo.tenant_id).items for grant in row.waits_for
    }, "the list does not name who still uses the old one"
    done = ground.cli("ssh-authority", "finish", "user", "--force")
    assert done.returncode == 0, done.stderr
    applied = lambda: all(n.trust_applied == n.trust_generation for n in _living(ground))  # noqa: E731
    await asyncio.to_thread(wait_until, applied, PATIENCE_S, "the hosts to forget the old one")
    with pytest.raises(AccessRefused):
        await hostname(view, key, certificate=odd.certificate())
    assert await hostname(view, key, certificate=new.certificate()) == "gpu1"


def _living(ground: Ground) -> list[Any]:
    return [n for n in ground.demo.boss.list_nodes(ground.demo.tenant_id).items if n.state != "retired"]


async def test_both_authorities_change_in_the_middle_of_a_real_deploy(held: Held, ground: Ground, good: Any) -> None:
    """The product's controller takes the operation over from the test and finishes it."""
    key, before = good
    await held.give_back()
    ground.start_controller()
    await asyncio.to_thread(
        wait_until,
        lambda: ground.operation(held.operation_id).progress.step > 2,
        PATIENCE_S,
        "the deploy to be under way",
    )
    for purpose in ("user", "host"):
        ground.demo.boss.rotate_ssh_authority(ground.demo.tenant_id, purpose=purpose)
    done = await asyncio.to_thread(ground.ended, held.operation_id)
    assert done.status == "succeeded", done.error
    for purpose in ("user", "host"):
        await asyncio.to_thread(
            wait_until, partial(_settled, ground, purpose), PATIENCE_S, f"the {purpose} rotation to be over"
        )
    events = [one.type for one in ground.events() if one.type.startswith("custody.authority.")]
    assert events.count("custody.authority.retired") >= 3
    shown = ground.on_host("gpu1", "ssh-keygen", "-L", "-f", "/etc/ssh/gpuaas/host-cert.pub")
    assert before.host_principal in shown
    with pytest.raises(HostIdentityWrong):  # a client that knows only the former authorities trusts this host no more
        await hostname(before, key)
