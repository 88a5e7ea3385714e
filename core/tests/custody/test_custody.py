"""Keys and certificates: what is sealed opens only where it belongs; what is signed opens one door for five minutes."""

import base64
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import ssh
from gpuaas_core.custody.key_providers.port import CustodyFailed
from gpuaas_core.machine_access.authorities import sign_user
from gpuaas_core.machine_access.tables import ssh_authorities
from sqlalchemy import select, update

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import HOST_KEY, World, apply_trust
from core.tests.support.store_rows import rows, store_files


async def _grant(world: World, claim: Any) -> dict[str, Any]:
    body = {"claim_epoch": claim["claim_epoch"], "allocation_id": world.allocations[0], "ssh_public_key": HOST_KEY}
    return await world.controller.ok(world.operation(claim["operation"]["id"], "access-grants"), body)


def _certificate(text: str) -> ssh.SSHCertificate:
    found = ssh.load_ssh_public_identity(text.encode())
    assert isinstance(found, ssh.SSHCertificate)
    return found


def _fingerprint(key: Any) -> bytes:
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)


async def test_an_authority_key_moved_to_another_row_signs_nothing(world: World) -> None:
    t = ssh_authorities.c
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]

    def move(tx: Any) -> None:
        user = tx.execute(select(ssh_authorities).where(t.tenant_id == world.tenant, t.purpose == "user")).one()
        moved = dict(user._mapping) | {"tenant_id": other}
        tx.execute(ssh_authorities.insert().values(**moved))
        swapped = update(ssh_authorities).where(t.tenant_id == world.tenant, t.purpose == "host")
        tx.execute(swapped.values(sealed_private_key=user.sealed_private_key))

    world.platform.db.write_now(move)
    with pytest.raises(CustodyFailed):
        world.platform.db.write_now(
            lambda tx: sign_user(
                tx,
                world.platform.vault,
                other,
                key_line=HOST_KEY,
                principal="p",
                key_id="k",
                now=world.platform.clock(),
            )
        )
    invited = await world.boss.ok(f"/v1/tenants/{world.tenant}/enrolments", {"node_name": "spare"})
    body = {
        "token": invited["token"],
        "public_jwk": world.machine_key.as_dict(private=False),
        "ssh_host_public_key": HOST_KEY,
        "facts": {"hostname": "spare", "cpus": 1, "memory_mb": 1},
    }
    check_problem(await world.api.post("/v1/enrol", body), 503, "custody_failed")
    assert rows(world.platform, "select id from nodes where name = 'spare'") == []


async def test_a_certificate_opens_one_allocation_for_five_minutes(world: World) -> None:
    await world.deploy()
    await world.claim()
    claim = await world.claim()
    grant = await _grant(world, claim)
    now = world.platform.clock() // 1000
    certificate = _certificate(grant["certificate"])
    assert certificate.type is ssh.SSHCertificateType.USER
    assert certificate.valid_principals == [world.allocations[0].encode()]
    assert certificate.key_id == f"{claim['operation']['id']}/2".encode()
    assert certificate.extensions == {b"permit-pty": b""}
    assert certificate.critical_options == {}
    assert abs(certificate.valid_after - (now - 60)) <= 2
    assert abs(certificate.valid_before - (now + 300)) <= 2
    assert grant["expires_in_s"] == 300
    assert _fingerprint(certificate.public_key()).decode() == HOST_KEY
    certificate.verify_cert_signature()
    trust = await apply_trust(world.nodes[2], world.machine)
    assert _fingerprint(certificate.signature_key()).decode() in trust["user_ca_public_keys"]
    assert (grant["principal"], grant["host_principal"]) == (world.allocations[0], world.nodes[0])
    assert (grant["address"], grant["port"], grant["login_user"]) == ("10.0.0.9", 22, "root")


async def test_every_certificate_has_its_own_serial_and_is_on_record(world: World) -> None:
    await world.deploy()
    claim = await world.claim()
    serials = {_certificate((await _grant(world, claim))["certificate"]).serial for _ in range(3)}
    recorded = rows(world.platform, "select serial, operation_id, claim_epoch, principal_id from access_grants")
    assert {row["serial"] for row in recorded} == serials
    assert len(serials) == 3
    assert {row["operation_id"] for row in recorded} == {claim["operation"]["id"]}
    assert {row["principal_id"] for row in recorded} == {world.controller_id}
    told = rows(world.platform, "select data from events where type = 'apps.access.granted'")
    assert len(told) == 3
    assert not any("cert" in row["data"] for row in told), "an event carries no certificate"


async def test_a_host_certificate_names_the_node_and_nothing_else(world: World) -> None:
    trust = await apply_trust(world.nodes[2], world.machine)
    certificate = _certificate(trust["host_certificate"])
    assert certificate.type is ssh.SSHCertificateType.HOST
    assert certificate.valid_principals == [world.nodes[2].encode()]
    assert (certificate.extensions, certificate.critical_options) == ({}, {})
    certificate.verify_cert_signature()
    assert _fingerprint(certificate.signature_key()).decode() == trust["host_ca_public_key"]


def test_a_certificate_without_a_principal_is_never_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="every login"):
        sign_user(None, None, "t", key_line=HOST_KEY, principal="", key_id="k", now=0)  # type: ignore[arg-type]


async def test_private_authority_keys_are_nowhere_in_plain(world: World, store_folder: Path) -> None:
    stored = world.platform.db.read_now(lambda tx: tx.execute(select(ssh_authorities)).all())
    assert len(stored) == 2
    for row in stored:
        bound = f"ssh-authority/{row.tenant_id}/{row.purpose}"  # as the first release sealed it
        private = world.platform.db.read_now(
            lambda tx, row=row, bound=bound: world.platform.vault.unseal(
                tx, row.tenant_id, row.sealed_private_key, bound
            )
        )
        key = serialization.load_ssh_private_key(private, None)
        assert isinstance(key, Ed25519PrivateKey)
        seed = key.private_bytes_raw()
        for form in (private, private[60:120], seed, seed.hex().encode(), base64.b64encode(seed)):
            assert not [file.name for file in store_files(store_folder) if form in file.read_bytes()]
    for file in store_files(store_folder):
        assert b"PRIVATE KEY" not in file.read_bytes()
