"""Generates the page of error codes, grouped by HTTP status."""

from collections.abc import Iterator

from ...kit.problems import CATALOGUE, Problem
from .markdown import item, sentence

HEAD = """# Errors

Every failure, from every address, is one [problem document](https://www.rfc-editor.org/rfc/rfc9457) with the content
type `application/problem+json`. Programs read `code`; people read `detail` and `way_out`. Keep the `correlation_id`:
[`gpuaas triage`](../guides/api.md#correlation) takes it. `detail` and `way_out` of a real answer are often more precise
than the lines below: they name the resource.

*Retryable* means that the same request may succeed later without a change by anyone: `retryable` in the document. Codes
are part of the contract. New ones may be added; they do not change their meaning.
"""

MEANINGS: dict[int, str] = {
    400: "The request cannot be parsed",
    401: "Authentication required",
    403: "Not permitted",
    404: "Not found, or not visible to you",
    405: "The address does not support this method",
    408: "The request took too long",
    409: "Conflict with the current state",
    410: "Gone for good",
    412: "The resource changed since you read it",
    413: "The request is too large",
    415: "Unsupported content type",
    422: "Valid syntax, but not acceptable",
    428: "A precondition header is required",
    429: "Too many requests",
    500: "A bug in the platform",
    502: "Another server failed",
    503: "Temporarily unavailable",
}


def page() -> str:
    return HEAD + "".join(_groups())


def _groups() -> Iterator[str]:
    by_status: dict[int, list[type[Problem]]] = {}
    for _, kind in sorted(CATALOGUE.items()):
        by_status.setdefault(kind.status, []).append(kind)
    for status, kinds in sorted(by_status.items()):
        yield f"\n## {status}: {MEANINGS.get(status, 'Other')}\n\n"
        yield "".join(_entry(kind) for kind in kinds)


def _entry(kind: type[Problem]) -> str:
    retryable = " (retryable)" if kind.retryable else ""
    return item(f"`{kind.code}`{retryable}: {sentence(kind.title)} Way out: {kind.way_out}")
