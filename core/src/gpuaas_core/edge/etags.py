"""Strong entity tags: a fingerprint of what was shown. An update names the one it was based on (RFC 9110, 13.1.1)."""

import hashlib

from fastapi import Response
from pydantic import BaseModel

from ..kit.problems import Problem


class PreconditionMissing(Problem):
    status, code, title = 428, "precondition_missing", "The If-Match header is missing"
    way_out = "Read the resource and send its ETag as If-Match, so that nobody's change is lost."


class PreconditionFailed(Problem):
    status, code, title = 412, "precondition_failed", "The resource has changed since you read it"
    way_out = "Read it again, see whether your change still fits, and send it with the new ETag (`current_etag`)."


def etag_of(view: BaseModel) -> str:
    return f'"{hashlib.sha256(view.model_dump_json().encode()).hexdigest()[:32]}"'


def tagged(view: BaseModel, etag: str | None = None) -> Response:
    tag = etag or etag_of(view)
    return Response(view.model_dump_json(), headers={"ETag": tag}, media_type="application/json")


def check_match(if_match: str | None, current: str) -> None:
    """After the replay lookup, so that a lost answer to an update is repeated instead of refused."""
    if if_match is None:
        raise PreconditionMissing("This change needs If-Match.")
    if if_match.strip() != current:
        raise PreconditionFailed("Somebody or something changed it meanwhile.", extra={"current_etag": current})
