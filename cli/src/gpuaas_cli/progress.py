"""Shows the progress of an operation: a live list of steps on a terminal, a line per step in a pipe, nothing for JSON.

Used by deploy, watch, decommission and retry. Steps come from operation_stream.py, the closing text from wait.py.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from .operation_stream import LIVE, Moment
from .show import console, lasting

if TYPE_CHECKING:
    from gpuaas_sdk.client.errors import GpuaasError
    from rich.console import RenderableType

BAR_WIDTH = 40
AWAY = "The platform does not answer. The operation continues; reconnecting."


@dataclass
class Step:
    number: int
    of: int
    message: str
    began: datetime
    ended: datetime | None = None

    def seconds(self) -> float:
        return max(0.0, ((self.ended or datetime.now(UTC)) - self.began).total_seconds())


@dataclass
class Steps:
    """The steps of an operation so far. A step ends when the next step starts; a new message within a step replaces its
    text."""

    steps: list[Step] = field(default_factory=list)
    status: str = "queued"
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def current(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    def saw(self, moment: Moment) -> Step | None:
        """Add a progress report. Returns the step that the report starts, or None if it starts no new step."""
        if not self.steps:
            self.began = min(self.began, moment.at)
        self.status = moment.status
        current = self.current
        if current and (moment.ended or (moment.step, moment.of) != (current.number, current.of)):
            current.ended = moment.at
        if moment.ended or not moment.message:
            return None
        if current and current.ended is None:
            current.message = moment.message
            return None
        self.steps.append(Step(moment.step, moment.of, moment.message, moment.at))
        return self.steps[-1]

    def since_start(self, step: Step) -> float:
        return max(0.0, (step.began - self.began).total_seconds())


class View(Protocol):
    def saw(self, moment: Moment) -> None: ...
    def line(self, error: GpuaasError | None) -> None: ...
    def __enter__(self) -> View: ...
    def __exit__(self, *_: Any) -> None: ...


class Silent:
    """Progress for JSON and YAML: prints nothing before the end."""

    def saw(self, moment: Moment) -> None: ...
    def line(self, error: GpuaasError | None) -> None: ...
    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: Any) -> None: ...


class Plain(Silent):
    """Progress for logs: one line per step."""

    def __init__(self, title: str) -> None:
        self._steps, self._away = Steps(), False
        print(title, flush=True)

    def saw(self, moment: Moment) -> None:
        step = self._steps.saw(moment)
        if step:
            count = f"{step.number}/{step.of} " if step.of else ""
            print(f"[{lasting(self._steps.since_start(step)):>9}] {count}{step.message}", flush=True)

    def line(self, error: GpuaasError | None) -> None:
        if bool(error) != self._away:
            self._away = bool(error)
            print(AWAY if error else "Reconnected to the platform.", flush=True)


class Living:
    """Progress on a terminal: check marks, a spinner for the current step, and durations."""

    def __init__(self, title: str) -> None:
        from rich.live import Live
        from rich.spinner import Spinner

        self._title, self._steps, self._away = title, Steps(), False
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(get_renderable=self._render, console=console(), refresh_per_second=10)

    def saw(self, moment: Moment) -> None:
        self._steps.saw(moment)

    def line(self, error: GpuaasError | None) -> None:
        self._away = bool(error)

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        lines = Table.grid(padding=(0, 1))
        lines.add_column(width=3, justify="right")
        lines.add_column(overflow="fold")
        lines.add_column(justify="right", style="dim", no_wrap=True)
        for step in self._steps.steps:
            lines.add_row(self._mark(step), Text(step.message), self._aside(step))
        current = self._steps.current
        below = [bar(self._steps)] if current and current.of and self._steps.status in LIVE else []
        below += [Text(f"  {AWAY}", style="yellow")] if self._away else []
        return Group(Text(self._title, style="bold"), lines, *below)

    def _mark(self, step: Step) -> RenderableType:
        if step.ended is None:
            return self._spinner
        last = step is self._steps.current
        good = not last or self._steps.status == "succeeded"
        return "[green]✓[/]" if good else "[red]✗[/]"

    def _aside(self, step: Step) -> str:
        running = f"{step.number} of {step.of}, " if step.ended is None and step.of else ""
        return f"{running}{lasting(step.seconds())}"

    def __enter__(self) -> Living:
        self._live.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self._live.__exit__(*details)


def bar(steps: Steps) -> RenderableType:
    """Return a progress bar that shows how many of the steps are completed."""
    from rich.progress_bar import ProgressBar

    current = steps.current
    of = current.of if current else 0
    done = of if steps.status == "succeeded" else max(0, current.number - 1) if current else 0
    return ProgressBar(total=max(1, of), completed=done, width=BAR_WIDTH)


def view(title: str, *, json: bool) -> View:
    if json:
        return Silent()
    return Living(title) if sys.stdout.isatty() else Plain(title)
