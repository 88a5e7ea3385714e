"""Reads content from sources while no transaction is open. Content becomes available only after it was read completely
and its digest was verified.

`Reader` is the interface for routes: it reads in a few threads of its own, and concurrent requests for the same
artifact share one read.
"""

import asyncio
import base64
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from typing import ParamSpec, TypeVar

from .addresses import Address, checked, inside
from .errors import ContentWrong, OnItsWay, SourceAway, SourceRefused
from .http_source import getting
from .s3_signing import KeyPair, signed
from .store import CACHE, KEPT, Store

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 8  # concurrent reads
MOST_MANIFEST_BYTES = 4 * 1024 * 1024
PATIENCE_S = 1800.0  # for one artifact of any size
MANIFESTS = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Place:
    """What is needed to read an object without the database:
    the source's address and credential, and the object's reference."""

    source_id: str
    kind: str
    base_url: str
    port: int | None
    private: bool
    reference: Mapping[str, str]
    credential: dict[str, str] | None = field(default=None, repr=False)

    @property
    def shelf(self) -> str:
        """The folder of the source's cache. Each source has its own,
        so that a tenant cannot get another tenant's content by its digest."""
        return f"{CACHE}/{self.source_id}"

    @property
    def base(self) -> Address:
        return checked(self.base_url, private=self.private, port=self.port)


@dataclass(frozen=True)
class Found:
    sha256: str
    size: int
    media_type: str = ""


def content_at(place: Place) -> Address:
    if place.kind == "oci":
        return inside(place.base, f"v2/{place.reference['repository']}/blobs/{place.reference['layer']}")
    return inside(place.base, place.reference["path"])


def headers_for(place: Place) -> Callable[[Address], dict[str, str]]:
    """Return a function that computes the authentication headers for an address. The function is called again after
    each redirect, because an S3 signature is valid for one address only."""
    known = place.credential or {"kind": "none"}
    ways: dict[str, Callable[[Address], dict[str, str]]] = {
        "none": lambda _: {},
        "basic": lambda _: {"Authorization": f"Basic {_basic(known)}"},
        "bearer": lambda _: {"Authorization": f"Bearer {known['token']}"},
        "s3": lambda at: signed(at, _keys(known), int(time.time())),
    }
    return ways[known["kind"]]


def into_cache(store: Store, place: Place, wanted: Found | None) -> Found:
    """Read the whole content into the source's cache and return its digest and size. If `wanted` is given, content that
    differs from it raises ContentWrong; with `wanted=None` any content is accepted."""
    with (
        getting(content_at(place), headers_for(place), private=place.private, patience_s=PATIENCE_S) as answer,
        store.receiving(wanted.size if wanted else store.bounds.largest) as incoming,
    ):
        if wanted and answer.length not in (None, wanted.size):
            raise ContentWrong(f"The source announced {answer.length} bytes; {wanted.size} are registered.")
        if not wanted and not answer.framed:
            raise SourceRefused("The source does not announce the length of its response. Send `sha256` and `size`.")
        for piece in answer.pieces():
            incoming.write(piece)
        if answer.length is not None and incoming.size < answer.length:
            raise SourceAway("The source ended its response too early.", retry_after_s=2)
        if wanted and (incoming.size, incoming.sha256) != (wanted.size, wanted.sha256):
            raise ContentWrong(f"The source returned sha256:{incoming.sha256}; sha256:{wanted.sha256} is registered.")
        store.keep(incoming, place.shelf)
        return Found(incoming.sha256, incoming.size)


def layer_of(place: Place) -> tuple[Found, str]:
    """Read an OCI manifest, verify the manifest's digest, and return its layer (digest, size, media type). Raises
    SourceRefused unless the reference selects exactly one layer."""
    manifest = place.reference["manifest"]
    address = inside(place.base, f"v2/{place.reference['repository']}/manifests/{manifest}")
    secret = headers_for(place)
    body = b""
    headers: Callable[[Address], dict[str, str]] = lambda at: secret(at) | {"Accept": MANIFESTS}  # noqa: E731
    with getting(address, headers, private=place.private, patience_s=60) as answer:
        for piece in answer.pieces():
            body += piece
            if len(body) > MOST_MANIFEST_BYTES:
                raise SourceRefused(f"The manifest has more than {MOST_MANIFEST_BYTES} bytes.")
    if f"sha256:{hashlib.sha256(body).hexdigest()}" != manifest:
        raise ContentWrong("The source returned a manifest that does not match its digest.")
    return _chosen(body, place.reference.get("layer"))


def _chosen(body: bytes, layer: str | None) -> tuple[Found, str]:
    try:
        layers = [
            (entry["digest"], int(entry["size"]), str(entry["mediaType"])) for entry in json.loads(body)["layers"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SourceRefused("The manifest lists no layers, so it is not an image or artifact manifest.") from error
    fitting = [entry for entry in layers if layer in (None, entry[0])]
    if len(fitting) != 1 or not DIGEST.fullmatch(str(fitting[0][0])) or fitting[0][1] < 0:
        names = ", ".join(str(entry[0]) for entry in layers[:5])
        raise SourceRefused(f"Set `layer` to a layer of the manifest. It has: {names or 'none'}.")
    digest, size, media_type = fitting[0]
    return Found(digest.removeprefix("sha256:"), size, media_type[:120]), digest


class Reader:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="artifact")  # starts no thread before it is used
        self._under_way: dict[str, asyncio.Task[Found]] = {}

    async def ask(self, fn: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Run a blocking function in the reader's own threads,
        so that slow sources do not occupy the threads of other requests."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(fn, *arguments, **options))

    async def opened(self, wanted: Found, place: Place | None, *, wait_s: float) -> BufferedReader:
        """Open the content; if the store does not have it, read it from its source first. Raises OnItsWay if this takes
        longer than `wait_s`. With `place=None` there is no source, and missing content raises SourceRefused."""
        shelf = place.shelf if place else KEPT
        file = await asyncio.to_thread(self.store.opened, shelf, wanted.sha256, wanted.size)
        if file is None and place is not None:
            await self._read(wanted, place, wait_s)
            file = await asyncio.to_thread(self.store.opened, shelf, wanted.sha256, wanted.size)
        if file is None:
            raise SourceRefused("The content is no longer in the store.")
        return file

    async def _read(self, wanted: Found, place: Place, wait_s: float) -> None:
        """Read the content into the cache, or join a read that is under way. Raises OnItsWay after `wait_s`, while the
        read continues in the background."""
        what = f"{place.shelf}/{wanted.sha256}"
        task = self._under_way.get(what)
        if task is None:
            task = self._under_way[what] = asyncio.create_task(self.ask(into_cache, self.store, place, wanted))
            task.add_done_callback(lambda _: self._under_way.pop(what, None))
        done, _ = await asyncio.wait({task}, timeout=wait_s)
        if not done:
            raise OnItsWay(f"{wanted.size} bytes are being read from the source.", retry_after_s=2)
        task.result()


def _basic(known: dict[str, str]) -> str:
    return base64.b64encode(f"{known['username']}:{known['password']}".encode()).decode()


def _keys(known: dict[str, str]) -> KeyPair:
    return KeyPair(known["access_key_id"], known["secret_access_key"], known["region"])
