"""The same promises wherever the master key is held: one suite over a key file, a real OpenBao and an HSM (SoftHSM)."""

import base64
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.custody import rotation
from gpuaas_core.custody.key_providers import open_holder
from gpuaas_core.custody.key_providers.embedded import Embedded
from gpuaas_core.custody.key_providers.port import CustodyFailed, CustodyUnavailable, Holder
from gpuaas_core.custody.tables import data_keys
from gpuaas_core.custody.vault import DataKeyVault, open_vault, read_vault
from gpuaas_core.http.call import Platform
from gpuaas_core.machine_access.tables import ssh_authorities
from gpuaas_lab.openbao import Bao, bao
from sqlalchemy import select, update

from core.tests.support.fixtures import World
from core.tests.support.software_hsm import hsm

pytestmark = pytest.mark.any_store

KINDS = ("embedded", "openbao", "pkcs11")


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Bao, dict[str, str]]]:
    with bao() as running:
        yield running, running.prepare()


@pytest.fixture(params=KINDS)
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    if request.param == "openbao":
        return request.getfixturevalue("server")[1]
    return hsm(tmp_path) if request.param == "pkcs11" else {"GPUAAS_CORE_CUSTODY": "embedded"}


@pytest.fixture
def holder(environment: dict[str, str], tmp_path: Path) -> Holder:
    return _opened(environment, tmp_path)


@pytest.fixture
def vault(holder: Holder, platform: Platform) -> DataKeyVault:
    platform.db.write_now(lambda tx: tx.execute(data_keys.delete()))
    return open_vault(platform.db.write_now, holder)


def _opened(environment: dict[str, str], folder: Path) -> Holder:
    return open_holder(environment["GPUAAS_CORE_CUSTODY"], environment, folder)


def _sealed(platform: Platform, vault: DataKeyVault, tenant: str, plain: bytes, bound_to: str) -> bytes:
    return platform.db.write_now(lambda tx: vault.seal(tx, tenant, plain, bound_to))


def _unsealed(platform: Platform, vault: DataKeyVault, tenant: str, sealed: bytes, bound_to: str) -> bytes:
    return platform.db.read_now(lambda tx: vault.unseal(tx, tenant, sealed, bound_to))


def test_a_wrapped_key_opens_only_for_what_it_was_wrapped(holder: Holder) -> None:
    key = os.urandom(32)
    version, wrapped = holder.wrap(key, "data-key/ten_a/1")
    assert (version, holder.unwrap(version, wrapped, "data-key/ten_a/1")) == (holder.current(), key)
    assert key not in wrapped
    assert holder.wrap(key, "data-key/ten_a/1")[1] != wrapped
    with pytest.raises(CustodyFailed):
        holder.unwrap(version, wrapped, "data-key/ten_b/1")
    with pytest.raises(CustodyFailed):
        holder.unwrap(version, wrapped[:-4] + b"AAA=", "data-key/ten_a/1")
    with pytest.raises(CustodyFailed):
        holder.unwrap(version, b"", "data-key/ten_a/1")


def test_a_new_master_key_wraps_and_the_old_one_still_opens_until_it_is_retired(holder: Holder) -> None:
    key = os.urandom(32)
    before, wrapped = holder.wrap(key, "x")
    after = holder.rotate()
    assert after == holder.current() != before
    assert holder.wrap(key, "x")[0] == after
    assert holder.unwrap(before, wrapped, "x") == key
    assert holder.retire({before}) == []
    assert before in holder.retire({after})
    with pytest.raises(CustodyFailed):
        holder.unwrap(before, wrapped, "x")
    assert holder.retire({after}) == []


def test_a_holder_opened_again_opens_what_it_wrapped(
    environment: dict[str, str], tmp_path: Path, holder: Holder
) -> None:
    key = os.urandom(32)
    version, wrapped = holder.wrap(key, "x")
    again = _opened(environment, tmp_path)
    assert again.unwrap(version, wrapped, "x") == key
    newer, rewrapped = holder.rotate(), holder.wrap(key, "x")[1]
    assert again.unwrap(newer, rewrapped, "x") == key, "a core that runs since before the rotation needs no restart"


def test_a_sealed_value_opens_only_where_it_lies(platform: Platform, vault: DataKeyVault) -> None:
    sealed = _sealed(platform, vault, "ten_a", b"secret", "ssh-authority/ten_a/user")
    assert _unsealed(platform, vault, "ten_a", sealed, "ssh-authority/ten_a/user") == b"secret"
    _sealed(platform, vault, "ten_b", b"other", "x")
    later = platform.db.write_now(lambda tx: rotation.rotate_data_key(tx, vault, "ten_a"))
    moved = sealed[:4] + later.to_bytes(4, "big") + sealed[8:]
    attempts: list[tuple[str, bytes, str]] = [
        ("ten_b", sealed, "ssh-authority/ten_a/user"),
        ("ten_c", sealed, "ssh-authority/ten_a/user"),
        ("ten_a", sealed, "ssh-authority/ten_a/host"),
        ("ten_a", sealed, ""),
        ("ten_a", moved, "ssh-authority/ten_a/user"),
        ("ten_a", sealed[:-1], "ssh-authority/ten_a/user"),
        ("ten_a", sealed[4:], "ssh-authority/ten_a/user"),
        ("ten_a", b"", "ssh-authority/ten_a/user"),
        ("ten_a", sealed[:30] + bytes([sealed[30] ^ 1]) + sealed[31:], "ssh-authority/ten_a/user"),
    ]
    for tenant, content, bound_to in attempts:
        with pytest.raises(CustodyFailed):
            _unsealed(platform, vault, tenant, content, bound_to)


def test_a_data_key_moved_to_another_tenant_opens_nothing(platform: Platform, vault: DataKeyVault) -> None:
    sealed = _sealed(platform, vault, "ten_a", b"secret", "x")
    _sealed(platform, vault, "ten_b", b"other", "x")

    def swap(tx: Any) -> None:
        mine = tx.execute(select(data_keys).where(data_keys.c.owner == "ten_a")).one()
        tx.execute(update(data_keys).where(data_keys.c.owner == "ten_b").values(wrapped=mine.wrapped))

    platform.db.write_now(swap)
    vault.forget()
    for content in (sealed, _relabelled(sealed)):
        with pytest.raises(CustodyFailed):
            _unsealed(platform, vault, "ten_b", content, "x")


def _relabelled(sealed: bytes) -> bytes:
    return sealed[:4] + (1).to_bytes(4, "big") + sealed[8:]


def test_rotating_the_master_key_changes_no_secret_no_token_and_no_signature(
    platform: Platform, vault: DataKeyVault, holder: Holder, environment: dict[str, str], tmp_path: Path
) -> None:
    sealed = {tenant: _sealed(platform, vault, tenant, tenant.encode(), "x") for tenant in ("ten_a", "ten_b", "ten_c")}
    mac, key = vault.mac("token"), vault.public_key("audit")
    holder.rotate()
    assert rotation.rewrap(platform.db, holder, holder) == 4  # three tenants and the root
    assert rotation.rewrap(platform.db, holder, holder) == 0
    holder.retire(platform.db.read_now(lambda tx: rotation.used_versions(tx, holder)))
    fresh = platform.db.read_now(lambda tx: read_vault(tx, _opened(environment, tmp_path)))
    for one in (vault, fresh):
        one.forget()
        assert (one.mac("token"), one.public_key("audit")) == (mac, key)
        for tenant, content in sealed.items():
            assert _unsealed(platform, one, tenant, content, "x") == tenant.encode()


async def test_a_new_data_key_seals_everything_again_and_the_old_one_goes(world: World, holder: Holder) -> None:
    db, old = world.platform.db, world.platform.vault.holder
    holder = old if holder.kind == old.kind else holder  # one key file is not moved to another, it is rotated
    rotation.rewrap(db, old, holder)
    vault = db.read_now(lambda tx: read_vault(tx, holder))
    before = {r.purpose: r for r in db.read_now(lambda tx: tx.execute(select(ssh_authorities)).all())}
    db.write_now(lambda tx: rotation.rotate_data_key(tx, vault, world.tenant))
    assert rotation.reseal(db, vault) == len(before) == 2
    assert rotation.reseal(db, vault) == 0
    assert rotation.forget_data_keys(db) == 1
    for row in db.read_now(lambda tx: tx.execute(select(ssh_authorities)).all()):
        bound_to = f"ssh-authority/{row.tenant_id}/{row.purpose}"
        assert vault.version_of(row.sealed_private_key) == 2
        again = _unsealed(world.platform, vault, row.tenant_id, row.sealed_private_key, bound_to)
        assert b"OPENSSH PRIVATE KEY" in again
        with pytest.raises(CustodyFailed):
            _unsealed(world.platform, vault, row.tenant_id, before[row.purpose].sealed_private_key, bound_to)


def test_many_threads_share_one_holder(platform: Platform, vault: DataKeyVault) -> None:
    sealed = _sealed(platform, vault, "ten_a", b"secret", "x")
    opened: list[bytes] = []

    def use() -> None:
        for _ in range(5):
            vault.forget()
            opened.append(_unsealed(platform, vault, "ten_a", sealed, "x"))

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert opened == [b"secret"] * 30


@pytest.mark.usefixtures("vault")
def test_a_core_with_another_master_key_does_not_start_on_this_store(platform: Platform) -> None:
    with pytest.raises(CustodyFailed):
        open_vault(platform.db.write_now, Embedded({1: os.urandom(32)}))


# --- the key file alone


def test_a_store_of_the_first_release_goes_on_with_its_key(platform: Platform, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from gpuaas_core.kit.store_facts import store_facts

    key, nonce, path = os.urandom(32), os.urandom(12), tmp_path / "master.key"
    path.write_bytes(base64.b64encode(key))
    path.chmod(0o600)

    def as_it_was(tx: Any) -> None:
        tx.execute(data_keys.delete())
        tx.execute(store_facts.insert().values(name="master_key", value="its fingerprint"))

    platform.db.write_now(as_it_was)
    sealed = nonce + AESGCM(key).encrypt(nonce, b"of old", b"ssh-authority/ten_a/user")
    vault = open_vault(platform.db.write_now, Embedded.in_file(path))
    assert _unsealed(platform, vault, "ten_a", sealed, "ssh-authority/ten_a/user") == b"of old"
    vault.holder.rotate()
    rotation.rewrap(platform.db, vault.holder, vault.holder)
    assert vault.holder.retire({vault.holder.current()}) == ["1"]
    again = open_vault(platform.db.write_now, Embedded.in_file(path))
    assert again.mac("x") == vault.mac("x")
    assert _unsealed(platform, again, "ten_a", sealed, "ssh-authority/ten_a/user") == b"of old"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666, 0o610])
def test_a_master_key_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "master.key"
    Embedded.in_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(mode)
    with pytest.raises(RuntimeError, match="chmod 600"):
        Embedded.in_file(path)


def test_the_master_key_stays_the_same_also_when_two_cores_start_at_once(tmp_path: Path) -> None:
    for attempt in range(10):
        path, seen = tmp_path / f"master-{attempt}.key", []
        together = threading.Barrier(6)

        def start(path: Path = path, seen: list[bytes] = seen, together: threading.Barrier = together) -> None:
            together.wait()
            seen.append(Embedded.in_file(path).first_key)

        threads = [threading.Thread(target=start) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [Embedded.in_file(path).first_key] * 6
        assert [file.name for file in tmp_path.iterdir() if ".new" in file.name] == []


def test_the_master_key_may_come_from_the_environment_of_a_service_manager(tmp_path: Path) -> None:
    one, two = (base64.b64encode(os.urandom(32)).decode() for _ in range(2))
    holder = open_holder("embedded", {"GPUAAS_CORE_MASTER_KEY": f"1:{one},2:{two}"}, tmp_path)
    assert holder.current() == "2"
    assert list(tmp_path.iterdir()) == [], "nothing is written to disk"
    with pytest.raises(RuntimeError, match="where it is stored"):
        holder.rotate()
    for wrong in ("nonsense", "1:AAAA", "x:" + one, ","):
        with pytest.raises(RuntimeError, match="GPUAAS_CORE_MASTER_KEY"):
            open_holder("embedded", {"GPUAAS_CORE_MASTER_KEY": wrong}, tmp_path)


# --- the server away


def test_while_the_server_is_away_the_error_says_so_and_then_all_goes_on(platform: Platform) -> None:
    with bao() as server:
        holder = _opened(server.prepare(), Path())
        platform.db.write_now(lambda tx: tx.execute(data_keys.delete()))
        vault = open_vault(platform.db.write_now, holder)
        sealed = _sealed(platform, vault, "ten_a", b"secret", "x")
        server.stop()
        assert _unsealed(platform, vault, "ten_a", sealed, "x") == b"secret", "an opened key goes on for its time"
        vault.forget()
        for _ in range(3):
            with pytest.raises(CustodyUnavailable) as refused:
                _unsealed(platform, vault, "ten_a", sealed, "x")
            assert refused.value.status == 503
            assert refused.value.retryable
        server.start()
        deadline = threading.Event()
        for _ in range(100):
            try:
                assert _unsealed(platform, vault, "ten_a", sealed, "x") == b"secret"
                break
            except CustodyUnavailable:
                deadline.wait(0.2)
        else:
            raise AssertionError("the vault did not find the server again")


def test_settings_that_are_missing_are_named(tmp_path: Path) -> None:
    for kind, named in (("openbao", "GPUAAS_CORE_OPENBAO_ADDRESS"), ("pkcs11", "GPUAAS_CORE_PKCS11_MODULE")):
        with pytest.raises(RuntimeError, match=named):
            open_holder(kind, {}, tmp_path)
    with pytest.raises(RuntimeError, match="embedded, openbao, pkcs11"):
        open_holder("postit", {}, tmp_path)
