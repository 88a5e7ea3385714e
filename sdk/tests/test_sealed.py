"""What the platform sealed opens for the one it was sealed to, and for no other account or claim."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from gpuaas_sdk.client.auth import ServiceAccount
from gpuaas_sdk.client.models import SealedCredentialView
from gpuaas_sdk.client.sealed import SealBroken, open_credential, open_secret
from joserfc import jwe, jws
from joserfc.jwk import ECKey, OKPKey

from sdk.tests.support.fake_platform import wire

ACCOUNT = ServiceAccount.generate(project_id="prj_1", api="https://gpu.example")
PLATFORM = OKPKey.generate_key("Ed25519")
ASKED: dict[str, Any] = {"audience": "sa_1", "operation_id": "op_1", "claim_epoch": 3}


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def agreement_key(jwk: dict[str, str]) -> Any:
    if jwk["kty"] == "EC":
        return ECKey.import_key({name: value for name, value in jwk.items() if name != "d"})
    scalar = hashlib.sha512(base64.urlsafe_b64decode(jwk["d"] + "==")).digest()[:32]
    public = X25519PrivateKey.from_private_bytes(scalar).public_key().public_bytes_raw()
    return OKPKey.import_key({"kty": "OKP", "crv": "X25519", "x": b64(public)})


def sealed(to: dict[str, str], signer: OKPKey = PLATFORM, **changes: Any) -> str:
    claims = {"aud": "sa_1", "operation_id": "op_1", "claim_epoch": 3, "exp": int(time.time()) + 300, "value": "s3cret"}
    inner = jws.serialize_compact({"alg": "EdDSA"}, json.dumps(claims | changes), signer, algorithms=["EdDSA"])
    head = {"alg": "ECDH-ES", "enc": "A256GCM"}
    return jwe.encrypt_compact(head, inner, agreement_key(to), algorithms=["ECDH-ES", "A256GCM"])


def opening(text: str, key: dict[str, str]) -> str:
    return open_secret(text, private_jwk=key, platform_jwk=PLATFORM.as_dict(private=False), **ASKED)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "key", [ACCOUNT.private_jwk, ECKey.generate_key("P-256").as_dict(private=True)], ids=["okp", "ec"]
)
def test_the_account_it_was_sealed_to_opens_it(key: dict[str, str]) -> None:
    assert opening(sealed(key), key) == "s3cret"


def test_another_account_does_not() -> None:
    other = ServiceAccount.generate(project_id="prj_1", api="https://gpu.example")
    with pytest.raises(SealBroken):
        opening(sealed(ACCOUNT.private_jwk), other.private_jwk)


def test_what_another_key_signed_is_refused() -> None:
    with pytest.raises(SealBroken, match="not sealed by this platform"):
        opening(sealed(ACCOUNT.private_jwk, OKPKey.generate_key("Ed25519")), ACCOUNT.private_jwk)


@pytest.mark.parametrize("changes", [{"aud": "sa_2"}, {"operation_id": "op_2"}, {"claim_epoch": 2}, {"exp": 1}])
def test_what_was_sealed_for_another_use_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SealBroken, match="another use"):
        opening(sealed(ACCOUNT.private_jwk, **changes), ACCOUNT.private_jwk)


def credential(text: str, **output: Any) -> str:
    answer = wire(SealedCredentialView, credential_id="cred_1", version=2, sealed=text) | output
    asked = {"private_jwk": ACCOUNT.private_jwk, "platform_jwk": PLATFORM.as_dict(private=False)}
    return open_credential(msgspec.convert(answer, SealedCredentialView), **asked, **ASKED)  # type: ignore[arg-type]


def test_a_credential_opens_as_the_version_it_is() -> None:
    text = sealed(ACCOUNT.private_jwk, credential_id="cred_1", version=2)
    assert credential(text) == "s3cret"
    for output in ({"version": 1}, {"credential_id": "cred_2"}):
        with pytest.raises(SealBroken, match="another use"):
            credential(text, **output)
    with pytest.raises(SealBroken, match="credential_id"):
        credential(sealed(ACCOUNT.private_jwk))  # a runtime secret is no credential


def test_the_keys_are_real() -> None:
    assert Ed25519PrivateKey.from_private_bytes(base64.urlsafe_b64decode(ACCOUNT.private_jwk["d"] + "=="))
