"""Prints the parts of `adapter_detail` that all apps share: preflight, drift, failure. Called by the show commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import show

if TYPE_CHECKING:
    from gpuaas_sdk.client.generated_adapter_detail import AdapterDetail, Unit
    from gpuaas_sdk.client.request import JsonObject

MOST_CHECKS, MOST_LINES = 40, 8


def preflight(detail: JsonObject | None) -> None:
    """Print the preflight checks of each node; if there are many, only the failed ones."""
    machines = _read(detail).preflight or []
    rows = [(machine.host or "-", check) for machine in machines for check in machine.checks or []]
    shown = [(host, check) for host, check in rows if len(rows) <= MOST_CHECKS or not check.ok]
    if not rows:
        return
    print()
    if shown:
        results = [(host, c.check or "-", "ok" if c.ok else "failed", c.sentence or "-") for host, c in shown]
        show.table(("NODE", "CHECK", "RESULT", "DETAIL"), results)
    if len(shown) < len(rows):
        print(f"{len(rows) - len(shown)} other checks passed.")


def drift(detail: JsonObject | None) -> None:
    """Print how the instance differs from its desired state, and how to revert each difference."""
    found = _read(detail).drift or []
    rows = [tuple(word or "-" for word in (d.what, d.where, d.kind, d.said, d.revert)) for d in found]
    if rows:
        print()
        show.table(("DRIFT", "WHERE", "KIND", "FOUND", "TO REVERT"), rows)


def failure(detail: JsonObject | None) -> None:
    """Print the details of a failed operation: step, host, failed services, failed checks, and the last lines of
    output."""
    found = _read(detail)
    rows = [("failed step", found.step or ""), ("on host", found.host or "")]
    rows += [("service", _service(unit)) for unit in found.units or [] if unit.active not in ("active", "inactive")]
    rows += [("check", check.sentence or check.check or "-") for check in found.checks or [] if not check.ok]
    rows += [("output", line) for line in (found.output or "").splitlines()[-MOST_LINES:]]
    rows += [("log", line) for line in (found.log or [])[-MOST_LINES:]]
    if any(value for _, value in rows):
        print()
        show.facts(rows)


def _service(unit: Unit) -> str:
    return f"{unit.unit} is {unit.active} ({unit.sub}, {unit.result})"


def _read(detail: JsonObject | None) -> AdapterDetail:
    from gpuaas_sdk.client.adapter_detail import read_adapter_detail  # loads msgspec, which `--help` does not need

    return read_adapter_detail(detail)
