"""Machine access on real sshd: a certificate opens one allocation's host, and nothing else."""

import asyncio

import asyncssh
import pytest
from gpuaas_sdk import AsyncClient, ServiceAccount
from gpuaas_sdk.client.errors import ApiError

from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(9)]


@pytest.fixture(scope="module")
def claimed(ground: Ground):
    """A claim of our own: the product's controller is stopped, and we hold its identity's operation."""
    ground.stack.folder.unwant("slurm-controller")
    wait_until(lambda: ground.stack.folder.process("slurm-controller") is None, 120, "the controller to stop")
    instance, _ = ground.deploy("held-by-a-test", "gpu1")
    account = ServiceAccount.load(ground.demo.identities["research"])
    here = ServiceAccount(
        private_jwk=account.private_jwk, project_id=account.project_id, api=ground.stack.api, id=account.id
    )

    async def claim():
        async with AsyncClient.for_service_account(here) as client:
            return await client.claim(ground.research, app_slug="slurm", holder="a-test", wait_s=20)

    yield here, asyncio.run(claim())
    ground.start_controller()
    ground.gone(ground.instance(instance.id))


async def grant(ground: Ground, claimed, allocation: str, epoch: int | None = None):
    account, claim = claimed
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with AsyncClient.for_service_account(account) as client:
        given = await client.grant_access(
            ground.research,
            claim.operation.id,
            claim_epoch=epoch or claim.claim_epoch,
            allocation_id=allocation,
            ssh_public_key=key.export_public_key().decode().strip(),
        )
    return key, given


async def connect(address: str, key, given, host_principal: str | None = None) -> str:
    known = f"@cert-authority * {given.host_ca_public_key}\n".encode()
    certificate = asyncssh.import_certificate(given.certificate)
    async with asyncssh.connect(
        address,
        username=given.login_user,
        client_keys=[(key, certificate)],
        agent_path=None,
        known_hosts=asyncssh.import_known_hosts(known.decode()),
        host_key_alias=host_principal or given.host_principal,
        connect_timeout=60,
    ) as connection:
        return str((await connection.run("hostname", timeout=60)).stdout).strip()


def address(ground: Ground, host: str) -> str:
    return next(one.address for one in ground.lab.status() if one.name == host)


async def test_the_certificate_opens_its_own_allocation(ground: Ground, claimed) -> None:
    key, given = await grant(ground, claimed, ground.allocations["gpu1"])
    assert await connect(given.address, key, given) == "gpu1"


async def test_the_certificate_of_one_allocation_is_refused_by_another_host(ground: Ground, claimed) -> None:
    key, given = await grant(ground, claimed, ground.allocations["gpu1"])
    for host in ("gpu2", "gpu3"):
        with pytest.raises(asyncssh.PermissionDenied):
            await connect(address(ground, host), key, given, host_principal=ground.nodes[host])


async def test_a_host_that_is_not_the_one_asked_for_is_refused(ground: Ground, claimed) -> None:
    key, given = await grant(ground, claimed, ground.allocations["gpu1"])
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        await connect(address(ground, "gpu2"), key, given)


async def test_no_certificate_for_an_allocation_the_operation_does_not_touch(ground: Ground, claimed) -> None:
    for host in ("gpu2", "gpu3"):
        with pytest.raises(ApiError) as refused:
            await grant(ground, claimed, ground.allocations[host])
        assert refused.value.status == 404


async def test_no_certificate_for_a_stale_epoch(ground: Ground, claimed) -> None:
    with pytest.raises(ApiError) as refused:
        await grant(ground, claimed, ground.allocations["gpu1"], epoch=claimed[1].claim_epoch + 1)
    assert refused.value.code == "stale_claim"


async def test_neither_passwords_nor_unsigned_keys_open_a_host(ground: Ground, claimed) -> None:
    _, given = await grant(ground, claimed, ground.allocations["gpu1"])
    known = asyncssh.import_known_hosts(f"@cert-authority * {given.host_ca_public_key}\n")
    plain = asyncssh.generate_private_key("ssh-ed25519")
    with pytest.raises(asyncssh.PermissionDenied):
        async with asyncssh.connect(
            given.address,
            username="root",
            client_keys=[plain],
            agent_path=None,
            known_hosts=known,
            host_key_alias=given.host_principal,
            password="root",
            connect_timeout=60,
        ):
            pass


async def test_a_released_allocation_opens_nothing_any_more(ground: Ground, claimed) -> None:
    """gpu2 is given back; its host forgets the principal before the platform calls it released."""
    allocation = ground.allocations["gpu2"]
    ground.demo.boss.release_allocation(ground.research, allocation)
    wait_until(
        lambda: ground.demo.boss.get_allocation(ground.research, allocation).state == "released", 120, "the release"
    )
    principals = ground.on_host("gpu2", "cat", "/etc/ssh/gpuaas/principals/root")
    assert allocation not in principals
    ground.bring("gpu2")
    assert ground.allocations["gpu2"] != allocation
