"""The one error shape (RFC 9457). A room's errors are small subclasses without a default status: nobody forgets one.

Every subclass registers itself: the error catalogue in `contracts/errors.json` is generated from that list.
"""

from typing import Any, ClassVar

CATALOGUE: dict[str, type["Problem"]] = {}


class Problem(Exception):
    """Something the caller can read: a sentence (`detail`) and a way out."""

    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]
    way_out: ClassVar[str]
    retryable: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
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
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.exit = way_out or type(self).way_out
        self.errors = errors or []
        self.retry_after_s = retry_after_s
        self.extra = extra or {}

    def document(self, correlation_id: str, trace_id: str) -> dict[str, Any]:
        document: dict[str, Any] = {
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
        return document | self.extra


UNSEEN = "There is no such resource, or you may not see it."  # one sentence for both, so that nobody can tell


class NotFound(Problem):
    status, code, title = 404, "not_found", "Not found"
    way_out = "Check the id and the project. What you may not see looks the same as what does not exist."


class Invalid(Problem):
    status, code, title = 422, "invalid_request", "The request is not valid"
    way_out = "Correct the fields listed in `errors` and send the request again."


class MalformedBody(Problem):
    status, code, title = 400, "malformed_body", "The body cannot be read"
    way_out = "Send a JSON object with the content type application/json."


class BodyTooLarge(Problem):
    status, code, title = 413, "body_too_large", "The body is too large"
    way_out = "Send at most 1 MiB in one request."


class MethodNotAllowed(Problem):
    status, code, title = 405, "method_not_allowed", "The method is not allowed here"
    way_out = "See the Allow header for the methods of this address."


class Internal(Problem):
    status, code, title = 500, "internal_error", "Something went wrong on our side"
    way_out = "Try again; if it stays, report the correlation id to the operator of this platform."
    retryable = True


class Unavailable(Problem):
    status, code, title = 503, "unavailable", "The platform cannot answer right now"
    way_out = "Wait a moment and send the same request with the same Idempotency-Key."
    retryable = True
