"""Evidence that nothing is left on a machine, reported by the app's controller and checked here.

The evidence has one entry per allocation, with a list of `checks`; each check has a name, a result and a detail.
"""

from collections.abc import Iterable
from typing import TypedDict

from ..kit.json_types import Json, JsonValue, is_array, is_object
from .errors import EvidenceMissing, EvidenceNotClean, EvidenceUnverifiable

Evidence = Json | None


class Check(TypedDict):
    check: str
    ok: bool
    detail: str


def check_verifiable(allocation_ids: Iterable[str], evidence: Evidence) -> dict[str, list[Check]]:
    """Return the reported checks of each allocation. Raises EvidenceMissing if an allocation has no evidence, and
    EvidenceUnverifiable if it has no checks or a check has no name or result."""
    reported, wanted = evidence or {}, sorted(set(allocation_ids))
    missing = [one for one in wanted if one not in reported]
    if missing:
        raise EvidenceMissing(f"No evidence for {', '.join(missing)}.")
    return {one: _checks(one, reported[one]) for one in wanted}


def check_clean(allocation_ids: Iterable[str], evidence: Evidence) -> dict[str, list[Check]]:
    """Return the reported checks of each allocation. Raises EvidenceNotClean if a check failed, and the errors of
    `check_verifiable` if the evidence is incomplete."""
    checks = check_verifiable(allocation_ids, evidence)
    for allocation_id, rows in checks.items():
        if failed := [row for row in rows if not row["ok"]]:
            results = "; ".join(f"{row['check']}: {row['detail']}" for row in failed)
            raise EvidenceNotClean(f"Failed checks for {allocation_id}: {results}."[:1000])
    return checks


def _checks(allocation_id: str, entry: JsonValue) -> list[Check]:
    rows = entry.get("checks") if is_object(entry) else None
    if not is_array(rows) or not rows:
        raise _unverifiable(allocation_id, "has no `checks`")
    return [_check(allocation_id, number, row) for number, row in enumerate(rows)]


def _check(allocation_id: str, number: int, row: JsonValue) -> Check:
    facts: Json = row if is_object(row) else {}
    name, ok = facts.get("check"), facts.get("ok")
    if not isinstance(name, str) or not name.strip():
        raise _unverifiable(allocation_id, f"has no name in `checks[{number}].check`")
    if not isinstance(ok, bool):
        problem = f"has no result for the check {name!r}: `checks[{number}].ok` must be true or false"
        raise _unverifiable(allocation_id, problem)
    return Check(check=name, ok=ok, detail=str(facts.get("detail") or ""))


def _unverifiable(allocation_id: str, problem: str) -> EvidenceUnverifiable:
    return EvidenceUnverifiable(f"The evidence for {allocation_id} {problem}."[:1000])
