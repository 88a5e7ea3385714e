"""From the platform's words to sshd's files: what is written, and what is refused."""

import copy
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from gpuaas_agent.errors import TrustInvalid
from gpuaas_agent.places import Places
from gpuaas_agent.trust import Trust, drop_in


def line(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def test_authorities_principals_and_certificate_become_three_files(view: Any, host_key: Any, places: Places) -> None:
    written = Trust.of(view, line(host_key)).files(places)
    assert written[places.ssh / "user_ca.pub"].decode() == view["user_ca_public_keys"][0] + "\n"
    assert written[places.ssh / "principals/root"] == b"alloc_1\nalloc_2\n"
    assert written[places.ssh / "host-cert.pub"].startswith(b"ssh-ed25519-cert-v01@openssh.com ")


def test_nobody_may_log_in_when_no_allocation_is_held(view: Any, host_key: Any, places: Places) -> None:
    view["principals"] = {"root": []}
    assert Trust.of(view, line(host_key)).files(places)[places.ssh / "principals/root"] == b""


def test_sshd_is_told_to_trust_the_platform_and_nothing_else() -> None:
    text = drop_in(Places()).decode()
    for setting in (
        "TrustedUserCAKeys /etc/ssh/gpuaas/user_ca.pub",
        "AuthorizedPrincipalsFile /etc/ssh/gpuaas/principals/%u",
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
        ("user_ca_public_keys", ['command="id" ssh-ed25519 ' + "A" * 68]),
        ("user_ca_public_keys", ["ssh-ed25519 " + "A" * 68 + "\nssh-ed25519 " + "B" * 68]),
        ("user_ca_public_keys", ["not a key"]),
        ("host_certificate", ""),
        ("host_certificate", "ssh-ed25519-cert-v01@openssh.com " + "A" * 400),
        ("host_certificate", "ssh-ed25519 AAAA"),
        ("generation", None),
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
