"""From the platform's words to sshd's files: what is written, and what is refused."""

import copy
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from gpuaas_agent.errors import TrustInvalid
from gpuaas_agent.places import Places
from gpuaas_agent.revoked import revocation_list
from gpuaas_agent.trust import Trust, drop_in


def line(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def test_authorities_principals_and_certificate_become_files(view: Any, host_key: Any, places: Places) -> None:
    written = Trust.of(view, line(host_key)).files(places)
    assert written[places.ssh / "user_ca.pub"].decode() == view["user_ca_public_keys"][0] + "\n"
    assert written[places.ssh / "principals/root"] == b"alloc_1\nalloc_2\n"
    assert written[places.ssh / "host-cert.pub"].startswith(b"ssh-ed25519-cert-v01@openssh.com ")


def test_no_login_is_allowed_when_no_allocation_is_held(view: Any, host_key: Any, places: Places) -> None:
    view["principals"] = {"root": []}
    assert Trust.of(view, line(host_key)).files(places)[places.ssh / "principals/root"] == b""


def test_sshd_is_told_to_trust_the_platform_and_nothing_else() -> None:
    text = drop_in(Places()).decode()
    for setting in (
        "TrustedUserCAKeys /etc/ssh/gpuaas/user_ca.pub",
        "RevokedKeys /etc/ssh/gpuaas/revoked.krl",
        "AuthorizedPrincipalsCommand /usr/bin/sh /etc/ssh/gpuaas/admit.sh %u %i %s",
        "AuthorizedPrincipalsCommandUser root",
        "AuthorizedPrincipalsFile none",
        "HostCertificate /etc/ssh/gpuaas/host-cert.pub",
        "AuthorizedKeysFile none",
        "PasswordAuthentication no",
        "PermitRootLogin prohibit-password",
    ):
        assert f"\n{setting}\n" in text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("principals", {"root": ["alloc_1\nmallory"]}),
        ("principals", {"root": ['command="id" alloc_1']}),
        ("principals", {"root": ["*"]}),
        ("principals", {"root": [""]}),
        ("principals", {"root": [7]}),
        ("principals", {"../../etc/passwd": ["alloc_1"]}),
        ("principals", {"Root": ["alloc_1"]}),
        ("principals", {"": ["alloc_1"]}),
        ("principals", ["alloc_1"]),
        ("people", ["alloc_1"]),
        ("people", ['alloc_1.people" ']),
        ("people", [7]),
        ("people", [["alloc_1.people"]]),
        ("people", 7),
        ("user_ca_public_keys", ['command="id" ssh-ed25519 ' + "A" * 68]),
        ("user_ca_public_keys", ["ssh-ed25519 " + "A" * 68 + "\nssh-ed25519 " + "B" * 68]),
        ("user_ca_public_keys", ["not a key"]),
        ("host_certificate", ""),
        ("host_certificate", "ssh-ed25519-cert-v01@openssh.com " + "A" * 400),
        ("host_certificate", "ssh-ed25519 AAAA"),
        ("generation", None),
        ("revoked_serials", ["0"]),
        ("revoked_serials", ["-1"]),
        ("revoked_serials", [7]),
        ("revoked_serials", ["7\n8"]),
        ("revoked_serials", [str(2**64)]),
        ("revoked_serials", "x"),
    ],
)
def test_anything_that_is_not_plainly_right_is_refused(view: Any, host_key: Any, field: str, value: Any) -> None:
    bad = copy.deepcopy(view) | {field: value}
    with pytest.raises(TrustInvalid) as caught:
        Trust.of(bad, line(host_key))
    assert "Nothing was changed" in caught.value.way_out


def test_a_certificate_made_for_another_host_key_is_refused(view: Any) -> None:
    with pytest.raises(TrustInvalid, match="another host key"):
        Trust.of(view, line(Ed25519PrivateKey.generate()))


def test_a_missing_field_is_refused(view: Any, host_key: Any) -> None:
    del view["principals"]
    with pytest.raises(TrustInvalid):
        Trust.of(view, line(host_key))


def test_people_are_named_apart_from_controllers(view: Any, host_key: Any, places: Places) -> None:
    view["people"] = ["alloc_1.people"]
    written = Trust.of(view, line(host_key)).files(places)
    assert written[places.ssh / "people"] == b"alloc_1.people\n"
    assert b"people" not in written[places.ssh / "principals/root"]
    assert b"@" not in written[places.ssh / "enter.sh"].replace(b'"$@"', b""), "a word was not filled in"


def test_a_platform_of_before_people_is_understood(view: Any, host_key: Any, places: Places) -> None:
    assert "people" not in view
    assert Trust.of(view, line(host_key)).files(places)[places.ssh / "people"] == b""


def test_a_platform_of_before_revoking_is_understood(view: Any, host_key: Any) -> None:
    del view["revoked_serials"]
    assert Trust.of(view, line(host_key)).revoked == ()


@pytest.mark.parametrize("serials", [[], [7], [1, 2**63 - 1, 2**64 - 1], list(range(1, 10_001))])
def test_openssh_reads_the_revocation_list_we_write(serials: list[int], tmp_path: Path) -> None:
    file = tmp_path / "krl"
    file.write_bytes(revocation_list(serials))
    shown = subprocess.run(
        ["ssh-keygen", "-Q", "-l", "-f", file], capture_output=True, text=True, timeout=20, check=True
    ).stdout
    said = [line.split()[1] for line in shown.splitlines() if line.startswith("serial:")]
    found = {n for one in said for n in range(int(one.split("-")[0]), int(one.split("-")[-1]) + 1)}
    assert found == set(serials)


def test_the_same_serials_give_the_same_file() -> None:
    assert revocation_list([3, 1, 2, 2]) == revocation_list([1, 2, 3])
