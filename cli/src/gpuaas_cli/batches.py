"""Shows the progress of several operations of one batch, as started by `gpuaas member add`.

Steps come from operation_stream.py, the closing text from wait.py.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import failures, show
from .operation_stream import LIVE, Moment, moments_of
from .progress import AWAY, Steps, bar
from .wait import leave, print_failure, print_next

if TYPE_CHECKING:
    from gpuaas_sdk.client.errors import GpuaasError
    from gpuaas_sdk.client.models import BatchView
    from rich.console import RenderableType

    from .session import Session


def wait_for_batch(at: Session, batch: BatchView, component: str, *, after: int, json: bool) -> int:
    """Show the progress of all operations until the last one ends. Returns the exit code: 0 if all succeeded, 9 if
    not."""
    places = {m.id: f"{m.component_key}/{m.ordinal} on {m.node_name}" for m in batch.instance.members}
    names = {one.id: places.get(one.member_id or "", f"{component} {n}") for n, one in enumerate(batch.operations, 1)}
    title = f"Adding {len(names)} × {component} to {batch.instance.name}"
    with view(title, names, json=json) as shown:
        try:
            for whose, moment in moments_of(at.client, at.project_id, set(names), after=after, on_line=shown.line):
                shown.saw(whose, moment)
        except KeyboardInterrupt:
            return leave(batch.instance.name)
    return _say_end(at, batch, json=json)


def _say_end(at: Session, batch: BatchView, *, json: bool) -> int:
    ended = [at.client.get_operation(at.project_id, one.id) for one in batch.operations]
    instance = at.client.get_instance(at.project_id, batch.instance.id)
    bad = [one for one in ended if one.status != "succeeded"]
    if json:
        show.as_json({"batch_id": batch.batch_id, "instance": instance, "operations": ended})
    elif len(bad) < len(ended):
        print(f"\n{len(ended) - len(bad)} of {len(ended)} succeeded. {instance.name} is {instance.health.status}.")
        print_next((f"gpuaas member list {instance.name}", "the members"))
    for one in bad:
        print_failure(one, instance)
    return failures.ENDED_BADLY if bad else failures.OK


class Silent:
    """Progress for JSON and YAML: prints nothing before the end."""

    def saw(self, whose: str, moment: Moment) -> None: ...
    def line(self, error: GpuaasError | None) -> None: ...
    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: Any) -> None: ...


class Plain(Silent):
    """Progress for logs: one line per step, with its member."""

    def __init__(self, title: str, names: dict[str, str]) -> None:
        self._names, self._steps, self._away = names, {one: Steps() for one in names}, False
        print(title, flush=True)

    def saw(self, whose: str, moment: Moment) -> None:
        steps = self._steps[whose]
        if step := steps.saw(moment):
            count = f"{step.number}/{step.of} " if step.of else ""
            print(
                f"[{show.lasting(steps.since_start(step)):>9}] {self._names[whose]}: {count}{step.message}", flush=True
            )
        elif moment.ended:
            print(f"{'':>11} {self._names[whose]}: {moment.status}", flush=True)

    def line(self, error: GpuaasError | None) -> None:
        if bool(error) != self._away:
            self._away = bool(error)
            print(AWAY if error else "The platform is back.", flush=True)


class Living(Silent):
    """Progress on a terminal: one row per operation, with a bar and the current step."""

    def __init__(self, title: str, names: dict[str, str]) -> None:
        from rich.live import Live

        self._title, self._names, self._away = title, names, False
        self._steps = {one: Steps() for one in names}
        self._live = Live(get_renderable=self._render, console=show.console(), refresh_per_second=10)

    def saw(self, whose: str, moment: Moment) -> None:
        self._steps[whose].saw(moment)

    def line(self, error: GpuaasError | None) -> None:
        self._away = bool(error)

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        rows = Table.grid(padding=(0, 2))
        for whose, name in self._names.items():
            steps = self._steps[whose]
            now = steps.current.message if steps.current and steps.status in LIVE else steps.status
            rows.add_row(name, bar(steps), Text(now))
        away = [Text(f"  {AWAY}", style="yellow")] if self._away else []
        return Group(Text(self._title, style="bold"), rows, *away)

    def __enter__(self) -> Living:
        self._live.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self._live.__exit__(*details)


def view(title: str, names: dict[str, str], *, json: bool) -> Silent:
    if json:
        return Silent()
    return Living(title, names) if sys.stdout.isatty() else Plain(title, names)
