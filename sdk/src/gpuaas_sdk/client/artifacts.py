"""Uploads a file to the core's own artifact store, as a stream: `push_file(client, path, tenant_id)`.

It is not in calls/, because those requests have small JSON bodies. Used by the CLI and by scripts that publish
packages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from .models import BlobView
from .request import Request, at
from .transport import Exchange

if TYPE_CHECKING:
    from .clients import Client

PIECE = 1024 * 1024
PATIENCE_S = 300.0  # for one piece, not for all


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def push_file(client: Client, path: Path, tenant_id: str | None = None) -> BlobView:
    """Upload a file to the artifact store. Its digest is computed first, so that the platform rejects a damaged upload.

    Without `tenant_id` the file goes to the platform's own artifacts. Repeating the upload is safe.
    """
    sha256 = sha256_of(path)
    where = at("/v1/tenants/{}/artifact-store/{}", tenant_id, sha256) if tenant_id else f"/v1/artifact-store/{sha256}"
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(path.stat().st_size)}
    request = Request("PUT", where, BlobView, headers=headers, patience_s=PATIENCE_S)
    transport = client.transport
    transport.sign_in_if_due()
    exchange = Exchange(request, transport.auth, transport.api)
    try:
        return exchange.read(transport.http.request(**exchange.arguments(), content=_pieces(path)))
    except httpx2.HTTPError as error:
        raise exchange.no_answer(error) from error


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
