"""The error format (RFC 9457). Errors of a room are small subclasses of `Problem`, which has no default status.

Every subclass registers itself: the error catalogue in `contracts/errors.json` is generated from that list.
"""

from typing import ClassVar

from .json_types import Json, JsonValue

CATALOGUE: dict[str, type["Problem"]] = {}


class Problem(Exception):
    """An error that is returned to the caller of the API: one sentence (`detail`) and what to do (`way_out`)."""

    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]
    way_out: ClassVar[str]
    retryable: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        known = CATALOGUE.setdefault(cls.code, cls)
        if known.__qualname__ != cls.__qualname__:
            raise TypeError(f"error code {cls.code!r} is used by {known.__qualname__} and {cls.__qualname__}")

    def __init__(
        self,
        detail: str,
        *,
        way_out: str | None = None,
        errors: list[dict[str, str]] | None = None,
        retry_after_s: int | None = None,
        extra: Json | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.exit = way_out or type(self).way_out
        self.errors = errors or []
        self.retry_after_s = retry_after_s
        self.extra = extra or {}

    def document(self, correlation_id: str, trace_id: str) -> dict[str, JsonValue]:
        document: dict[str, JsonValue] = {
            "type": f"urn:gpuaas:error:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "way_out": self.exit,
            "correlation_id": correlation_id,
            "trace_id": trace_id,
            "retryable": self.retryable,
            "errors": self.errors,
        }
        if self.retry_after_s is not None:
            document["retry_after_s"] = self.retry_after_s
        return {**document, **self.extra}


UNSEEN = "The resource does not exist, or you may not see it."  # indistinguishable on purpose


class NotFound(Problem):
    status, code, title = 404, "not_found", "Not found"
    way_out = (
        "Check the id and the project. A resource that you have no permission to see is also reported as not found."
    )


class Invalid(Problem):
    status, code, title = 422, "invalid_request", "Invalid request"
    way_out = "Correct the fields listed in `errors` and send the request again."


class MalformedBody(Problem):
    status, code, title = 400, "malformed_body", "Malformed request body"
    way_out = "Send a JSON object with the content type application/json."


class BodyTooLarge(Problem):
    status, code, title = 413, "body_too_large", "Request body too large"
    way_out = "Send at most 1 MiB in one request."


class MethodNotAllowed(Problem):
    status, code, title = 405, "method_not_allowed", "Method not allowed"
    way_out = "See the Allow header for the supported methods."


class Internal(Problem):
    status, code, title = 500, "internal_error", "Internal error"
    way_out = "Retry. If retries fail, report the correlation id to the platform operator."
    retryable = True


class Unavailable(Problem):
    status, code, title = 503, "unavailable", "Service unavailable"
    way_out = "Wait a moment and send the same request with the same Idempotency-Key."
    retryable = True
