"""Strong ETags: whoever changes something says which state of it they saw. 428 without, 412 when it has changed."""

import json
from typing import Annotated

from fastapi import Depends, Header, Response
from pydantic import BaseModel

from ..kit.problems import Problem

_Tags = Annotated[str | None, Header(max_length=400)]


class StateUnnamed(Problem):
    status, code, title = 428, "precondition_required", "Say which state you want to change"
    way_out = "Read it and send its `etag` as If-Match; to make a new one, send If-None-Match: *."


class StaleState(Problem):
    status, code, title = 412, "precondition_failed", "It is not in the state you saw"
    way_out = "Read it again, see whether you still want the change, and send it with the new `etag`."


class Preconditions:
    def __init__(self, if_match: _Tags = None, if_none_match: _Tags = None) -> None:
        self.wanted, self.unwanted = _tags(if_match), _tags(if_none_match)

    def check(self, etag: str | None) -> None:
        """`etag` of what there is now; None: there is nothing."""
        if self.wanted is None and self.unwanted is None:
            raise StateUnnamed("This request needs If-Match, or If-None-Match: * for something new.")
        if self.wanted is not None and not _among(etag, self.wanted):
            raise StaleState("It was changed since." if etag else "There is nothing by this name (any more).")
        if self.unwanted is not None and _among(etag, self.unwanted):
            raise StaleState("There is one by this name already.")


Seen = Annotated[Preconditions, Depends()]


def tagged(answer: Response | BaseModel) -> Response:
    """The answer with the `etag` it holds as its ETag."""
    if isinstance(answer, BaseModel):
        answer = Response(answer.model_dump_json(), media_type="application/json")
    answer.headers["ETag"] = f'"{json.loads(bytes(answer.body))["etag"]}"'
    return answer


def _among(etag: str | None, tags: set[str]) -> bool:
    return etag is not None and ("*" in tags or f'"{etag}"' in tags)


def _tags(header: str | None) -> set[str] | None:
    return None if header is None else {tag.strip() for tag in header.split(",")}
