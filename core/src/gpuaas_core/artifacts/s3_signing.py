"""AWS Signature Version 4 for one GET of one object, as S3 and S3-compatible servers check it.

Tested against the published examples (core/tests/test_artifact_signing.py) and a real server.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote

from .addresses import Address

_EMPTY = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class KeyPair:
    access_key_id: str
    secret_access_key: str
    region: str


def signed(address: Address, keys: KeyPair, now_s: int, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the headers for a GET request, including `Authorization` with the signature.
    The address's path must be percent-encoded already."""
    moment = datetime.fromtimestamp(now_s, UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": address.authority, "x-amz-content-sha256": _EMPTY, "x-amz-date": moment, **(more or {})}
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        ("GET", address.path or "/", _query(address.query), *(f"{n}:{headers[n]}" for n in sorted(headers)))
    )
    scope = f"{moment[:8]}/{keys.region}/s3/aws4_request"
    digest = hashlib.sha256(f"{canonical}\n\n{names}\n{_EMPTY}".encode()).hexdigest()
    signature = _mac(_signing_key(keys, moment[:8]), f"{_ALGORITHM}\n{moment}\n{scope}\n{digest}").hex()
    authorization = f"Credential={keys.access_key_id}/{scope},SignedHeaders={names},Signature={signature}"
    headers.pop("host")  # http.client sends it
    return headers | {"Authorization": f"{_ALGORITHM} {authorization}"}


def _query(query: str) -> str:
    pairs = sorted((quote(n, safe="-_.~"), quote(v, safe="-_.~")) for n, v in parse_qsl(query, keep_blank_values=True))
    return "&".join(f"{name}={value}" for name, value in pairs)


def _signing_key(keys: KeyPair, day: str) -> bytes:
    key = f"AWS4{keys.secret_access_key}".encode()
    for word in (day, keys.region, "s3", "aws4_request"):
        key = _mac(key, word)
    return key


def _mac(key: bytes, message: str) -> bytes:
    return hmac.new(key, message.encode(), hashlib.sha256).digest()
