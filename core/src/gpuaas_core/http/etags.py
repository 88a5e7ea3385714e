"""Strong ETags: a change names the revision it is based on. 428 without a precondition, 412 if it has changed."""

import hashlib
import json
from typing import Annotated

from fastapi import Depends, Header, Response
from pydantic import BaseModel

from ..kit.problems import Problem

_Tags = Annotated[str | None, Header(max_length=400)]


class PreconditionMissing(Problem):
    status, code, title = 428, "precondition_required", "If-Match header required"
    way_out = "Read the resource and send its `etag` as If-Match. To create it, send If-None-Match: *."


class PreconditionFailed(Problem):
    status, code, title = 412, "precondition_failed", "The resource changed since you read it"
    way_out = "Read it again, check the change, and send it with the new `etag`."


class Preconditions:
    def __init__(self, if_match: _Tags = None, if_none_match: _Tags = None) -> None:
        self.wanted, self.unwanted = _tags(if_match), _tags(if_none_match)

    def check(self, etag: str | None) -> None:
        """`etag` of the current resource; None: it does not exist. Checked after the replay lookup, so that a lost
        answer to an update is repeated instead of rejected.
        """
        if self.wanted is None and self.unwanted is None:
            raise PreconditionMissing("This request needs If-Match, or If-None-Match: * to create the resource.")
        if self.wanted is not None and not _among(etag, self.wanted):
            why = "The resource was changed." if etag else "The resource does not exist (any more)."
            raise PreconditionFailed(why, extra={"current_etag": etag} if etag else None)
        if self.unwanted is not None and _among(etag, self.unwanted):
            raise PreconditionFailed("A resource with this name exists already.", extra={"current_etag": etag})


Seen = Annotated[Preconditions, Depends()]


def etag_of(view: BaseModel) -> str:
    """A fingerprint of all fields, for resources without a revision."""
    return f'"{hashlib.sha256(view.model_dump_json().encode()).hexdigest()[:32]}"'


def in_halves(asked: object, view: BaseModel) -> str:
    """For resources that also change by reports: the first half changes with what people and operations do, the second
    with every field."""
    first = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]
    return f'"{first}.{etag_of(view)[1:-1]}"'


def of_what_was_asked(if_match: str | None, now: str) -> str | None:
    """A tag with the same first half matches: changes by reports alone are no conflict."""
    tags = _tags(if_match)
    half = now.partition(".")[0]
    return None if tags is None else ", ".join(now if tag.partition(".")[0] == half else tag for tag in tags)


def tagged(answer: Response | BaseModel) -> Response:
    """The response with its ETag: the `etag` field, or the fingerprint."""
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
