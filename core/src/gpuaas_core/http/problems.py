"""Exception handlers that answer every error with a problem document (RFC 9457): errors of rooms, of validation and of
routing, and bugs."""

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from ..kit.correlation import Correlation, current
from ..kit.problems import Internal, Invalid, MalformedBody, MethodNotAllowed, NotFound, Problem
from ..kit.wire import PATTERNS, counted
from .call import verify
from .request_log import seen_in

log = structlog.get_logger("gpuaas.edge")

UNREADABLE = (
    "The body cannot be read as JSON: it is nested too deeply, has a number with thousands of digits, or is not UTF-8."
)
_OBJECT = "It must be a JSON object, sent with the content type application/json."
# Sentences for the validator's error types; other types keep the validator's message.
SENTENCES = {
    "missing": "It is missing.",
    "extra_forbidden": "Unknown field.",
    "greater_than_equal": "It must be at least {ge}.",
    "greater_than": "It must be more than {gt}.",
    "less_than_equal": "It must be at most {le}.",
    "int_parsing": "It must be a whole number.",
    "int_type": "It must be a whole number.",
    "int_from_float": "It must be a whole number.",
    "string_type": "It must be text.",
    "string_too_short": "It must have at least {min_length} characters.",
    "string_too_long": "It may have at most {max_length} characters.",
    "bool_type": "It must be true or false.",
    "bool_parsing": "It must be true or false.",
    "list_type": "It must be a list.",
    "dict_type": "It must be an object.",
    "model_type": "It must be an object.",
    "model_attributes_type": "It must be an object.",
    "too_short": "It must have at least {min_length} items, not {actual_length}.",
    "too_long": "It may have at most {max_length} items, not {actual_length}.",
    "literal_error": "It must be {expected}.",
    "enum": "It must be {expected}.",
}


def install(app: FastAPI) -> None:
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _bug)


async def response_to(request: Request, error: Exception) -> Response:
    """Return the problem response to any exception, for requests that bypass the framework's exception handlers."""
    handlers = {Problem: _problem, RequestValidationError: _validation, HTTPException: _http}
    handler = next((handler for kind, handler in handlers.items() if isinstance(error, kind)), _bug)
    return await handler(request, error)


async def _problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return _respond(request, error)


def _respond(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """Build the response to the problem, and note the problem for the request log and the metrics."""
    if seen := seen_in(request.scope):
        seen.problem = {"code": problem.code, "detail": problem.detail[:2000], "way_out": problem.exit[:2000]}
    return answer(problem, headers)


def answer(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    seen = current.get() or Correlation("cor-none", "0" * 32)
    headers = dict(headers or {})
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="gpuaas"'
    if problem.retry_after_s is not None:
        headers["Retry-After"] = str(problem.retry_after_s)
    document = problem.document(seen.correlation_id, seen.trace_id)
    return JSONResponse(document, problem.status, headers, media_type="application/problem+json")


async def _validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    failures: list[ErrorDetails] = list(error.errors())
    if any(failure["type"] == "json_invalid" for failure in failures):
        return await _unreadable(request, "The body is not valid JSON.")
    try:
        await verify(request)
    except Problem as refusal:
        return _respond(request, refusal)
    errors = [{"pointer": _pointer(failure["loc"]), "message": _sentence(failure)} for failure in failures[:50]]
    named = ", ".join(field["pointer"] for field in errors[:3])
    verb = "is" if len(errors) == 1 else "are"
    return _respond(request, Invalid(f"{counted(len(errors), 'field')} {verb} invalid: {named}.", errors=errors))


async def _unreadable(request: Request, detail: str) -> JSONResponse:
    """Return the response to a body that cannot be parsed. The framework parses the body before the caller is verified,
    so the caller is verified here first; a refusal is returned instead."""
    try:
        await verify(request)
    except Problem as refusal:
        return _respond(request, refusal)
    return _respond(request, MalformedBody(detail))


def _sentence(error: ErrorDetails) -> str:
    facts = error.get("ctx", {})
    if shape := PATTERNS.get(facts.get("pattern", "")):
        return f"It must be {shape}."
    if error["loc"] == ("body",) and error["type"] in ("missing", "model_attributes_type", "dict_type"):
        return _OBJECT
    if facts.get("min_length") == 1:
        return "It must not be empty."
    known = SENTENCES.get(error["type"])
    return known.format_map(facts) if known else error["msg"]


def _pointer(location: tuple[int | str, ...]) -> str:
    inside = location[1:] if location[:1] == ("body",) else location
    return "/" + "/".join(str(part) for part in inside)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods(request))
        return _respond(request, MethodNotAllowed(f"{request.method} is not supported at {request.url.path}."), headers)
    if error.status_code == 404:
        way_out = "Check the path. contracts/openapi.json lists all paths; none ends with a slash."
        return _respond(request, NotFound(f"No resource at {request.url.path}.", way_out=way_out), headers)
    return await _unreadable(request, UNREADABLE)


def _methods(request: Request) -> list[str]:
    """Return all HTTP methods that the path supports. The framework's 405 names only those of the first matching
    route."""
    here = request.scope["route"].path
    declared = [route.methods or () for route in iter_route_contexts(request.app.routes) if route.path == here]
    return sorted({method for methods in declared for method in methods})


async def _bug(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected error", path=request.url.path, exc_info=error)
    return _respond(request, Internal("Unexpected internal error. No change of this request was saved."))
