"""The verdict: what happened, why, and what to do about it, from the newest failure."""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Denied
from .schemas import VerdictView


def of(operations: list[Row[Any]], lines: list[Row[Any]], decisions: list[Row[Any]]) -> VerdictView:
    """An operation first; then a failed request, as it was answered; then a denial of the audit trail."""
    if operations:
        return _of_operation(operations[-1])
    refused = [row for row in lines if row.source == "core" and row.fields.get("problem")]
    if refused:
        return _of_request(refused[-1])
    denied = [row for row in decisions if row.outcome != "allowed"]
    if denied:
        what = f"{denied[-1].actor_id} was not allowed to {denied[-1].permission}."
        return VerdictView(what=what, why=denied[-1].reason, way_out=Denied.way_out, code=Denied.code)
    return VerdictView(what="Nothing failed under this id.", why="", way_out="")


def _of_operation(row: Row[Any]) -> VerdictView:
    about = f"The {row.kind} of {row.instance_name} ({row.app_slug} {row.version})"
    error = row.error or {}
    if error and row.status != "succeeded":
        return VerdictView(
            what=f"{about} {ended(row.status)}" + (f" at step {row.step} of {row.steps}." if row.steps else "."),
            why=error["message"],
            way_out=error["way_out"],
            code=error["code"],
            operation_id=row.id,
        )
    if row.finished_at:
        return VerdictView(what=f"{about} {ended(row.status)}.", why=row.message, way_out="", operation_id=row.id)
    way_out = f"Wait for it (`gpuaas operation show {row.id}`), or cancel it."
    return VerdictView(what=f"{about} is {row.status}.", why=row.message, way_out=way_out, operation_id=row.id)


def ended(status: str) -> str:
    return {"canceled": "was canceled", "superseded": "was superseded by a newer one"}.get(
        status, status.replace("_", " ")
    )


def _of_request(row: Row[Any]) -> VerdictView:
    fields, problem = row.fields, row.fields["problem"]
    what = f"{fields['method']} {fields['path']} was answered with {fields['status']}."
    return VerdictView(what=what, why=problem["detail"], way_out=problem["way_out"], code=problem["code"])
