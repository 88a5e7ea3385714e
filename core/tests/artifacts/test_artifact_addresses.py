"""Which addresses the core contacts: one spelling per host, and nothing that leads into its own networks."""

import ipaddress
import socket
from typing import Any

import pytest
from gpuaas_core.artifacts import http_source
from gpuaas_core.artifacts.addresses import checked, inside, leads_astray, next_hop
from gpuaas_core.artifacts.errors import AddressRefused
from gpuaas_core.artifacts.s3_signing import KeyPair, signed
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.any_store

TRICKS = {
    "a user name": "https://models.example@evil.example/",
    "a user name and password": "https://a:b@models.example/",
    "an empty user name": "https://@models.example/",
    "a trailing dot": "https://models.example./",
    "an empty label": "https://models..example/",
    "a look-alike letter": "https://mоdels.example/",
    "a full-width dot": "https://models。example/",
    "a soft hyphen": "https://mod\u00adels.example/",
    "punycode": "https://xn--mdels-6ve.example/",
    "punycode further up": "https://a.xn--e1afmkfd/",
    "upper case": "https://Models.example/",
    "an underscore": "https://mod_els.example/",
    "a dash at the end": "https://models-.example/",
    "one label": "https://models/",
    "no host": "https:///models",
    "another scheme": "ftp://models.example/",
    "a file": "file:///etc/passwd",
    "plain http": "http://models.example/",
    "no scheme": "models.example",
    "a backslash": "https://models.example\\@evil.example/",
    "a tab": "https://models.example/\ta",
    "a new line": "https://models.example/\r\nHost: evil.example",
    "a space": "https://models.example/a b",
    "a NUL": "https://models.example/\0",
    "a query": "https://models.example/?a=b",
    "a fragment": "https://models.example/#a",
    "a query without a path": "https://models.example?@evil.example/",
    "climbing": "https://models.example/a/../b",
    "encoded climbing": "https://models.example/%2e%2e/b",
    "a double slash": "https://models.example//b",
    "port 0": "https://models.example:0/",
    "an empty port": "https://models.example:/",
    "a port with zeros": "https://models.example:0443/",
    "a port too high": "https://models.example:65536/",
    "an unusual port": "https://models.example:22/",
    "a port in letters": "https://models.example:https/",
    "loopback": "https://127.0.0.1/",
    "loopback, short": "https://127.1/",
    "loopback, shorter": "https://0x7f.1/",
    "loopback as a number": "https://2130706433/",
    "loopback in hexadecimal": "https://0x7f000001/",
    "loopback in octal": "https://0177.0.0.1/",
    "loopback with zeros": "https://127.0.0.01/",
    "loopback of six": "https://[::1]/",
    "loopback of six, long": "https://[0:0:0:0:0:0:0:1]/",
    "loopback inside six": "https://[::ffff:127.0.0.1]/",
    "loopback inside six in hexadecimal": "https://[::ffff:7f00:1]/",
    "a public one inside six": "https://[::ffff:8.8.8.8]/",
    "a public one of six, upper case": "https://[2606:4700::ABCD]/",
    "loopback through NAT64": "https://[64:ff9b::7f00:1]/",
    "loopback through 6to4": "https://[2002:7f00:1::]/",
    "a zone": "https://[fe80::1%25eth0]/",
    "brackets that do not close": "https://[::1/",
    "something after brackets": "https://[2606:4700::1]evil.example/",
    "all addresses": "https://0.0.0.0/",
    "a private network": "https://10.0.0.7/",
    "another private network": "https://192.168.1.1/",
    "carrier networks": "https://100.64.0.1/",
    "a cloud's metadata": "https://169.254.169.254/",
    "broadcast": "https://255.255.255.255/",
    "multicast": "https://224.0.0.1/",
    "unique local": "https://[fd00::1]/",
    "five numbers": "https://1.2.3.4.5/",
}


@pytest.mark.parametrize("url", TRICKS.values(), ids=TRICKS.keys())
def test_a_trick_with_the_host_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        checked(url)
    assert refused.value.detail.endswith(".")


@pytest.mark.parametrize(
    ("url", "port", "authority"),
    [
        ("https://models.example", None, "models.example"),
        ("https://models.example/", None, "models.example"),
        ("https://models.example:443/a", None, "models.example"),
        ("https://models.example:8443/a/b-c_d", 8443, "models.example:8443"),
        ("https://8.8.8.8/", None, "8.8.8.8"),
        ("https://[2606:4700::1]/x", None, "[2606:4700::1]"),
        ("https://1.models.example/", None, "1.models.example"),
    ],
)
def test_a_plain_address_is_taken_as_it_is(url: str, port: int | None, authority: str) -> None:
    assert checked(url, port=port).authority == authority


def test_what_the_platform_marks_as_private_may_be_near_and_plain_but_never_a_clouds_metadata() -> None:
    assert checked("http://127.0.0.1:5000/", private=True, port=5000).authority == "127.0.0.1:5000"
    assert checked("http://registry:5000/", private=True, port=5000).host == "registry"
    assert checked("https://10.1.2.3/", private=True).host == "10.1.2.3"
    for url in ("http://169.254.169.254/", "http://[fe80::1]/", "http://0.0.0.0/", "http://224.0.0.1/"):
        with pytest.raises(AddressRefused):
            checked(url, private=True)
    for odd in ("http://0x7f.1/", "http://user@127.0.0.1/", "http://127.0.0.1./", "http://127.0.0.1:5000/"):
        with pytest.raises(AddressRefused):
            checked(odd, private=True)


@settings(max_examples=400, deadline=None)
@given(st.ip_addresses())
@example(ipaddress.ip_address("::127.0.0.1"))
@example(ipaddress.ip_address("64:ff9b::a00:1"))
@example(ipaddress.ip_address("2002:a00:1::"))
def test_no_address_that_is_not_public_is_connected_to(address: Any) -> None:
    if leads_astray(str(address), private=False) is None:
        assert address.is_global
        bad = (address.is_loopback, address.is_link_local, address.is_multicast, address.is_unspecified)
        assert not any(bad)
        inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
        assert inner is None or inner.is_global


HOSTILE = "abz019.:@[]%/\\?#-_ \t\u0430\u3002AXx"


@settings(max_examples=1500, deadline=None)
@given(st.text(alphabet=HOSTILE, max_size=24))
@example("127.0.0.1")
@example("0x7f.0.0.1")
@example("a@b")
def test_whatever_is_accepted_has_exactly_one_reading(text: str) -> None:
    """The host we checked is the host a resolver gets: it is in the text as it is, and no library reads another."""
    from urllib.parse import urlsplit

    try:
        found = checked(f"https://{text}")
    except AddressRefused:
        return
    assert urlsplit(f"https://{text}").hostname == found.host
    assert urlsplit(f"https://{text}").username is None
    assert text.removeprefix("[").startswith(found.host)
    if found.host[-1].isdigit() and found.host.replace(".", "").isdigit():
        assert leads_astray(found.host, private=False) is None


@pytest.mark.parametrize(
    "path", ["../x", "a/../x", "/..", "a//b", "a\\b", "a%2fb", "a?b", "a#b", "a b", "ä", "a\nb", "."]
)
def test_a_reference_cannot_leave_its_source(path: str) -> None:
    with pytest.raises(AddressRefused):
        inside(checked("https://models.example/bucket"), path)


def test_a_reference_goes_below_the_sources_own_path() -> None:
    at = inside(checked("https://models.example/bucket/"), "a/b+c~1:2.deb")
    assert at.target == "/bucket/a/b%2Bc~1%3A2.deb"


@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example/a",
        "http://models.example/a",
        "https://models.example:8443/a",
        "https://models.example@evil.example/a",
        "https://models.example./a",
        "https://MODELS.example/a",
        "//evil.example/a",
        "///evil.example/a",
        "\\\\evil.example/a",
        "https://[::1/",
        "ftp://models.example/a",
        "https://127.0.0.1/",
        "/a\r\nHost: evil.example",
    ],
)
def test_a_redirect_leads_to_the_same_host_or_nowhere(location: str) -> None:
    here = checked("https://models.example/a")
    try:
        there = next_hop(here, location)
    except AddressRefused:
        return
    assert there.same_place == here.same_place, "it was read as a path, so the host is still ours"
    assert location == "///evil.example/a"


def test_a_redirect_inside_the_host_is_followed() -> None:
    assert next_hop(checked("https://models.example/a"), "/b?c=d").target == "/b?c=d"
    assert next_hop(checked("https://models.example/a/b"), "c").target == "/a/c"


def _answers(monkeypatch: pytest.MonkeyPatch, *rounds: list[str]) -> list[str]:
    """A name server that answers differently each time. What was connected to comes back."""
    asked, reached = list(rounds), []

    def resolve(_host: str, port: int, **_: Any) -> list[Any]:
        found = asked.pop(0) if len(asked) > 1 else asked[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in found]

    def connecting(address: tuple[str, int], timeout: float) -> Any:
        reached.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(http_source.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(http_source.socket, "create_connection", connecting)
    return reached


def test_the_connection_goes_to_the_address_that_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the second answer would lead to this machine. The name is resolved once."""
    reached = _answers(monkeypatch, ["8.8.8.8"], ["127.0.0.1"])
    with (
        pytest.raises(Exception, match="does not respond"),
        http_source.getting(checked("https://models.example/a"), lambda _: {}, private=False, patience_s=5),
    ):
        pass
    assert reached == ["8.8.8.8"]


@pytest.mark.parametrize("spoilt", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["169.254.169.254"], ["::1"]])
def test_a_name_with_one_bad_address_is_not_connected_to_at_all(
    monkeypatch: pytest.MonkeyPatch, spoilt: list[str]
) -> None:
    reached = _answers(monkeypatch, spoilt)
    with (
        pytest.raises(AddressRefused) as refused,
        http_source.getting(checked("https://models.example/a"), lambda _: {}, private=False, patience_s=5),
    ):
        pass
    assert reached == []
    assert not any(ip in refused.value.detail for ip in spoilt), "our answers do not reveal our networks"


KEYS = KeyPair("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
PUBLISHED_AT = 1369353600  # 2013-05-24T00:00:00Z, as in the S3 API reference, "Authenticating Requests"


@pytest.mark.parametrize(
    ("target", "more", "signature"),
    [
        ("/test.txt", {"range": "bytes=0-9"}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("/?lifecycle=", {}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("/?max-keys=2&prefix=J", {}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_a_request_is_signed_as_the_published_examples_are(target: str, more: dict[str, str], signature: str) -> None:
    address = next_hop(checked("https://examplebucket.s3.amazonaws.com"), target)
    assert signed(address, KEYS, PUBLISHED_AT, more)["Authorization"].endswith(f"Signature={signature}")
