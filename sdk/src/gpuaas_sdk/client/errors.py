"""The exceptions of the SDK. Callers decide by class; `str()` is a sentence for people.

Raised by the client, the event follower and machines.py; the controller loop and the CLI handle them.

    GpuaasError
    ├── ApiError                 the API answered with a problem document (RFC 9457)
    │   ├── Unauthenticated      401  sign in, or the service account was disabled
    │   ├── Denied               403  visible, but a permission key is missing
    │   ├── NotFound             404  does not exist, or is not visible to you
    │   ├── Conflict             409, 412, 428
    │   │   └── StaleClaim       409  another controller holds the operation: stop working on it
    │   ├── Gone                 410  e.g. an event cursor that has expired: list again
    │   ├── Invalid              every other 4xx; `errors` names the fields
    │   ├── RateLimited          429
    │   └── Unavailable          5xx
    ├── ConnectionFailed         no answer: refused, cut or timed out
    ├── BadAnswer                an answer that is not of this API (a proxy page, a wrong address)
    └── MachineError             a command or connection to a host failed
        ├── MachineUnreachable   no connection
        ├── HostIdentityWrong    the machine is not the host that the platform enrolled
        ├── AccessRefused        the host does not accept the certificate
        └── CommandTimedOut      a command ran longer than its timeout
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


class FieldError(msgspec.Struct, kw_only=True, frozen=True):
    pointer: str = ""
    message: str = ""


class Problem(msgspec.Struct, kw_only=True, frozen=True):
    """A problem document (RFC 9457). Every field has a default, since proxies send problem documents too."""

    status: int
    code: str = "unknown"
    title: str = ""
    detail: str = ""
    way_out: str = ""
    correlation_id: str = ""
    trace_id: str = ""
    retryable: bool = False
    retry_after_s: float | None = None
    type: str = "about:blank"
    errors: list[FieldError] = []


class KnownProblem(msgspec.Struct, kw_only=True, frozen=True):
    """The title, way out and other properties of one error code of the platform."""

    status: int
    title: str
    way_out: str
    retryable: bool = False


def known_problems() -> dict[str, KnownProblem]:
    """Return every error code of the platform version that this SDK was built for. Codes of failed operations are
    defined by their app."""
    kept = Path(__file__).with_name("problems.json").read_bytes()
    return msgspec.json.decode(kept, type=dict[str, KnownProblem])


class GpuaasError(Exception):
    """Base class of all SDK exceptions. `str()` is a sentence for people, `way_out` is what they can do."""

    code = "unknown"
    way_out = ""
    correlation_id = ""
    retryable = False


class ApiError(GpuaasError):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail or problem.title or f"The API answered {problem.status}.")
        self.problem = problem
        self.status = problem.status
        self.code = problem.code
        self.detail = problem.detail
        self.way_out = problem.way_out
        self.correlation_id = problem.correlation_id
        self.trace_id = problem.trace_id
        self.retryable = problem.retryable
        self.retry_after_s = problem.retry_after_s
        self.errors = problem.errors


class Unauthenticated(ApiError): ...


class Denied(ApiError): ...


class NotFound(ApiError): ...


class Conflict(ApiError): ...


class StaleClaim(Conflict): ...


class Gone(ApiError): ...


class Invalid(ApiError): ...


class RateLimited(ApiError): ...


class Unavailable(ApiError): ...


class ConnectionFailed(GpuaasError):
    code = "connection_failed"
    retryable = True

    def __init__(self, sentence: str, *, correlation_id: str = "") -> None:
        super().__init__(sentence)
        self.correlation_id = correlation_id
        self.way_out = "Check that the address is right and the platform is up, then try again."


class BadAnswer(GpuaasError):
    code = "bad_answer"

    def __init__(self, sentence: str, *, correlation_id: str = "") -> None:
        super().__init__(sentence)
        self.correlation_id = correlation_id
        self.way_out = "Check that the address is a GPUaaS API, at most two minor versions from this SDK."


class MachineError(GpuaasError):
    """A command or connection to a host failed. `code` and `retryable` are copied into the failed operation."""

    code = "machine_error"

    def __init__(self, sentence: str, way_out: str = "") -> None:
        super().__init__(sentence)
        self.way_out = way_out or type(self).way_out


class MachineUnreachable(MachineError):
    code = "machine_unreachable"
    way_out = "Check that the host is up and that its SSH port can be reached from the controller, then retry."
    retryable = True


class HostIdentityWrong(MachineError):
    code = "host_identity_wrong"
    way_out = "Do not go on: find out which machine answers at this address, then enrol the right one again."


class AccessRefused(MachineError):
    code = "access_refused"
    way_out = "Check that the host's agent runs and has applied the newest trust (node page), then retry."
    retryable = True


class CommandTimedOut(MachineError):
    code = "command_timed_out"
    way_out = "Look at the host's load and logs, then retry."
    retryable = True


_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthenticated,
    403: Denied,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: Conflict,
    428: Conflict,
    429: RateLimited,
}
_BY_CODE: dict[str, type[ApiError]] = {"stale_claim": StaleClaim}


def error_for(problem: Problem) -> ApiError:
    """Return the exception for a problem document: by its code if that code has a class, otherwise by HTTP status."""
    by_range = Unavailable if problem.status >= 500 else Invalid
    return _BY_CODE.get(problem.code, _BY_STATUS.get(problem.status, by_range))(problem)


def problem_from(status: int, content: bytes, *, correlation_id: str, retry_after_s: float | None = None) -> Problem:
    """Parse a problem document. Any other body, such as a proxy's page, becomes a problem that describes it."""
    known: dict[str, Any] = {"status": status, "correlation_id": correlation_id, "retry_after_s": retry_after_s}
    try:
        read = msgspec.json.decode(content, type=dict[str, Any])
        return msgspec.convert({**known, **{k: v for k, v in read.items() if v is not None}, "status": status}, Problem)
    except msgspec.MsgspecError:
        return Problem(**known, code=f"http_{status}", detail=f"The API answered {status} without saying why.")


def stale_claim(operation_id: str, why: str, correlation_id: str = "") -> StaleClaim:
    """Create the StaleClaim error for a claim that this process knows to be lost, without asking the platform."""
    detail = f"This controller no longer holds {operation_id}: {why}."
    return StaleClaim(Problem(status=409, code="stale_claim", detail=detail, correlation_id=correlation_id))
