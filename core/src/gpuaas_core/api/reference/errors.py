"""The error catalogue: grouped by what the caller has to change, which the status says."""

from collections.abc import Iterator

from ...kit.problems import CATALOGUE, Problem
from .markdown import sentence, table

HEAD = """# Errors

Every failure, from every address, is one [problem document](https://www.rfc-editor.org/rfc/rfc9457) with the content
type `application/problem+json`. Programs look at `code`; people read `detail` and `way_out`; both keep
`correlation_id`, which [`gpuaas triage`](../guides/api.md#correlation) takes. `detail` and `way_out` of a real answer
are often more precise than the lines below: they name the thing in question.

**Send again** says whether the same request may succeed later without anybody changing anything: `retryable` in the
document. Codes are part of the contract: they may be added, they do not change their meaning.
"""

MEANINGS: dict[int, str] = {
    400: "The request cannot be read",
    401: "Nobody is signed in",
    403: "You are known, and may not",
    404: "Not there, or not for you",
    405: "The address has no such method",
    408: "It took too long",
    409: "Not now: the state of things is in the way",
    410: "It was there, and is gone for good",
    412: "Somebody else changed it first",
    413: "Too much at once",
    415: "A kind of content nobody here reads",
    422: "Readable, but not acceptable",
    428: "Say which version you mean",
    429: "Too often",
    500: "Our fault",
    502: "Somebody else's server is at fault",
    503: "Try again in a moment",
}


def page() -> str:
    return HEAD + "".join(_groups())


def _groups() -> Iterator[str]:
    by_status: dict[int, list[type[Problem]]] = {}
    for _, kind in sorted(CATALOGUE.items()):
        by_status.setdefault(kind.status, []).append(kind)
    for status, kinds in sorted(by_status.items()):
        yield f"\n## {status}: {MEANINGS.get(status, 'Other')}\n\n"
        yield table(("code", "when", "way out", "send again"), (_row(kind) for kind in kinds))


def _row(kind: type[Problem]) -> tuple[str, ...]:
    return f"`{kind.code}`", sentence(kind.title), kind.way_out, "yes" if kind.retryable else "no"
