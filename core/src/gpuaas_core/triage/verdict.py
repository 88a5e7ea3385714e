"""The verdict on a timeline: what failed, why, and what to do."""

from ..audit.by_correlation import RecordedDecision
from ..authz.context import Denied
from ..kit.json_types import Json, is_object
from ..operations.rows import OperationRow
from .rows import LogLineRow
from .schemas import VerdictView


def of(
    operations: list[tuple[OperationRow, str]], lines: list[LogLineRow], decisions: list[RecordedDecision]
) -> VerdictView:
    """Return the verdict on the newest operation or, if there is none, on the newest failed request or denied
    permission. If nothing failed, the verdict reports that."""
    if operations:
        return _of_operation(*operations[-1])
    problems = [(row.fields, problem) for row in lines if row.source == "core" if (problem := _problem(row))]
    if problems:
        return _of_request(*problems[-1])
    denied = [row for row in decisions if row.outcome != "allowed"]
    if denied:
        what = f"{denied[-1].actor_id} was not allowed to {denied[-1].permission}."
        return VerdictView(what=what, why=denied[-1].reason, way_out=Denied.way_out, code=Denied.code)
    return VerdictView(what="Nothing failed under this id.", why="", way_out="")


def _of_operation(row: OperationRow, target: str) -> VerdictView:
    about = f"The {row.kind} of {target} ({row.app_slug} {row.version})"
    error = row.error or {}
    if error and row.status != "succeeded":
        return VerdictView(
            what=f"{about} {ended(row.status)}" + (f" at step {row.step} of {row.steps}." if row.steps else "."),
            why=str(error["message"]),
            way_out=str(error["way_out"]),
            code=str(error["code"]),
            operation_id=row.id,
        )
    if row.finished_at:
        return VerdictView(what=f"{about} {ended(row.status)}.", why=row.message, way_out="", operation_id=row.id)
    way_out = f"Wait until the operation ends (`gpuaas operation show {row.id}`), or cancel it."
    return VerdictView(what=f"{about} is {row.status}.", why=row.message, way_out=way_out, operation_id=row.id)


def ended(status: str) -> str:
    return {"canceled": "was canceled", "superseded": "was superseded by a newer one"}.get(
        status, status.replace("_", " ")
    )


def _problem(row: LogLineRow) -> Json | None:
    problem = row.fields.get("problem")
    return problem if is_object(problem) else None


def _of_request(fields: Json, problem: Json) -> VerdictView:
    what = f"{fields['method']} {fields['path']} was answered with {fields['status']}."
    return VerdictView(
        what=what, why=str(problem["detail"]), way_out=str(problem["way_out"]), code=str(problem["code"])
    )
