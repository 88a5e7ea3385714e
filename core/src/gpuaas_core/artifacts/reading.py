"""Reading from sources, outside of every transaction: each kind of source says what to ask for, and what came is
compared with what was registered before anybody can have it.

`Reader` is what routes use: it reads in a few threads of its own, and reads one thing once, however many ask for it.
"""

import asyncio
import base64
import hashlib
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Any

from .addresses import Address, checked, inside
from .connect import getting
from .errors import ContentWrong, OnItsWay, SourceAway, SourceRefused
from .s3_signing import KeyPair, signed
from .store import CACHE, KEPT, Store

THREADS = 8  # sources that are read at the same time
MOST_MANIFEST_BYTES = 4 * 1024 * 1024
PATIENCE_S = 1800.0  # one artifact, however large
MANIFESTS = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Place:
    """Where something is, and how one is let in there: all that is needed without the database."""

    source_id: str
    kind: str
    base_url: str
    port: int | None
    private: bool
    reference: dict[str, str]
    credential: dict[str, str] | None = field(default=None, repr=False)

    @property
    def shelf(self) -> str:
        """Of its own per source: who names a digest gets what that source has, not what somebody else had read."""
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
    """Asked anew for every hop, so that nothing is signed for another address than the one it goes to."""
    known = place.credential or {"kind": "none"}
    ways: dict[str, Callable[[Address], dict[str, str]]] = {
        "none": lambda _: {},
        "basic": lambda _: {"Authorization": f"Basic {_basic(known)}"},
        "bearer": lambda _: {"Authorization": f"Bearer {known['token']}"},
        "s3": lambda at: signed(at, _keys(known), int(time.time())),
    }
    return ways[known["kind"]]


def into_cache(store: Store, place: Place, wanted: Found | None) -> Found:
    """Read to the end, compare, then give it its place. `wanted=None`: it becomes what it is now."""
    with (
        getting(content_at(place), headers_for(place), private=place.private, patience_s=PATIENCE_S) as answer,
        store.receiving(wanted.size if wanted else store.bounds.largest) as incoming,
    ):
        if wanted and answer.length not in (None, wanted.size):
            raise ContentWrong(f"The source offers {answer.length} bytes; registered are {wanted.size}.")
        if not wanted and not answer.framed:
            raise SourceRefused("The source does not say how long its answer is; give `sha256` and `size`.")
        for piece in answer.pieces():
            incoming.write(piece)
        if answer.length is not None and incoming.size < answer.length:
            raise SourceAway("The source ended its answer too early.", retry_after_s=2)
        if wanted and (incoming.size, incoming.sha256) != (wanted.size, wanted.sha256):
            raise ContentWrong(f"The source gave sha256:{incoming.sha256}; registered is sha256:{wanted.sha256}.")
        store.keep(incoming, place.shelf)
        return Found(incoming.sha256, incoming.size)


def layer_of(place: Place) -> tuple[Found, str]:
    """What an OCI manifest says of the layer; the manifest itself is what its digest says, or nothing is believed."""
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
        raise ContentWrong("The source gave another manifest than the one with this digest.")
    return _chosen(body, place.reference.get("layer"))


def _chosen(body: bytes, layer: str | None) -> tuple[Found, str]:
    try:
        layers = [(one["digest"], int(one["size"]), str(one["mediaType"])) for one in json.loads(body)["layers"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SourceRefused("The manifest is not one of an image or artifact: it lists no layers.") from error
    fitting = [one for one in layers if layer in (None, one[0])]
    if len(fitting) != 1 or not DIGEST.fullmatch(str(fitting[0][0])) or fitting[0][1] < 0:
        names = ", ".join(str(one[0]) for one in layers[:5])
        raise SourceRefused(f"Name one layer of the manifest. It has: {names or 'none'}.")
    digest, size, media_type = fitting[0]
    return Found(digest.removeprefix("sha256:"), size, media_type[:120]), digest


class Reader:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="artifact")  # starts none before it is used
        self._under_way: dict[str, asyncio.Task[Found]] = {}

    async def ask(self, fn: Callable[..., Any], *arguments: Any) -> Any:
        """Something at a source: in threads of its own, since sources may be slow."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, fn, *arguments)

    async def opened(self, wanted: Found, place: Place | None, *, wait_s: float) -> BufferedReader:
        """The content, from the folder or read now. `place=None`: nobody but the folder has it."""
        shelf = place.shelf if place else KEPT
        file = await asyncio.to_thread(self.store.opened, shelf, wanted.sha256, wanted.size)
        if file is None and place is not None:
            await self._read(wanted, place, wait_s)
            file = await asyncio.to_thread(self.store.opened, shelf, wanted.sha256, wanted.size)
        if file is None:
            raise SourceRefused("The content is not in the store any more.")
        return file

    async def _read(self, wanted: Found, place: Place, wait_s: float) -> None:
        """Goes on when whoever asked for it does not wait any longer; the next one finds it under way or done."""
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
