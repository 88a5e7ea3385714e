"""ETags and preconditions. A request that changes a resource sends the ETag it is based on as If-Match. Without this
header the answer is 428; if the resource has changed since, the answer is 412."""

import hashlib
import json
from typing import Annotated

from fastapi import Depends, Header, Response
from pydantic import BaseModel
from pydantic_core import to_json

from ..kit.problems import Problem

_Tags = Annotated[str | None, Header(max_length=400)]


class PreconditionMissing(Problem):
    status, code, title = 428, "precondition_required", "If-Match header required"
    way_out = "Read the resource and send its `etag` as If-Match. To create a resource, send If-None-Match: *."


class PreconditionFailed(Problem):
    status, code, title = 412, "precondition_failed", "The resource changed since you read it"
    way_out = "Read the resource again, check what changed, and repeat your request with the new `etag`."


class Preconditions:
    def __init__(self, if_match: str | None = None, if_none_match: str | None = None) -> None:
        self.wanted, self.unwanted = _tags(if_match), _tags(if_none_match)

    def check(self, etag: str | None) -> None:
        """Compare the preconditions with `etag`, the tag of the current resource (None if it does not exist). Raise 428
        if the request has no precondition, and 412 if a precondition is not met.

        Called after the lookup of repeated requests, so that a repeat of a successful update gets its answer instead of
        412.
        """
        if self.wanted is None and self.unwanted is None:
            raise PreconditionMissing("This request needs If-Match, or If-None-Match: * to create the resource.")
        if self.wanted is not None and not _among(etag, self.wanted):
            why = "The resource was changed." if etag else "The resource does not exist (any more)."
            raise PreconditionFailed(why, extra={"current_etag": etag} if etag else None)
        if self.unwanted is not None and _among(etag, self.unwanted):
            raise PreconditionFailed("A resource with this name exists already.", extra={"current_etag": etag})


async def _sent(if_match: _Tags = None, if_none_match: _Tags = None) -> Preconditions:
    """Build the preconditions from the headers. This is a coroutine, because the framework calls plain functions in
    another thread."""
    return Preconditions(if_match, if_none_match)


Seen = Annotated[Preconditions, Depends(_sent)]


def etag_of(view: BaseModel) -> str:
    """Compute the ETag of a resource without a revision number: a hash of all its fields."""
    return f'"{hashlib.sha256(view.model_dump_json().encode()).hexdigest()[:32]}"'


def in_halves(asked: object, shown: bytes) -> str:
    """Compute a two-part ETag for a resource that is also changed by reports of its controller.

    The first part is a hash of `asked`, the fields that only requests and operations change. The second part is a hash
    of all fields (`shown`, the view as JSON with an empty `etag`).
    """
    first = hashlib.sha256(to_json(asked)).hexdigest()[:32]
    return f'"{first}.{hashlib.sha256(shown).hexdigest()[:32]}"'


def tagged_json(etag: str, shown: bytes) -> Response:
    """Return the view `shown` as a response, with the ETag from `in_halves` in its `etag` field and in the header.

    The first empty `etag` field of the JSON is filled, so it must come before all fields whose content is chosen by
    users.
    """
    body = shown.replace(b'"etag":""', b'"etag":' + to_json(etag), 1)
    return Response(body, headers={"ETag": etag}, media_type="application/json")


def of_what_was_asked(if_match: str | None, now: str) -> str | None:
    """Return the If-Match header, in which each tag with the same first part as the current tag `now` is replaced by
    `now`: changes by reports are then no conflict. None if there is no header."""
    tags = _tags(if_match)
    half = now.partition(".")[0]
    return None if tags is None else ", ".join(now if tag.partition(".")[0] == half else tag for tag in tags)


def tagged(answer: Response | BaseModel) -> Response:
    """Return the response with an ETag header: the `etag` field of the view or, if it has none, a hash of all its
    fields."""
    if isinstance(answer, BaseModel):
        known = getattr(answer, "etag", None) or etag_of(answer)
        return Response(answer.model_dump_json(), headers={"ETag": _quoted(known)}, media_type="application/json")
    answer.headers["ETag"] = _quoted(json.loads(bytes(answer.body))["etag"])
    return answer


def _quoted(etag: str) -> str:
    return etag if etag.startswith('"') else f'"{etag}"'


def _among(etag: str | None, tags: set[str]) -> bool:
    return etag is not None and ("*" in tags or _quoted(etag) in tags)


def _tags(header: str | None) -> set[str] | None:
    return None if header is None else {tag.strip() for tag in header.split(",")}
