"""Entry point of the Makefile: `python -m gpuaas_lab.stack up|down|status|logs`."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from gpuaas_lab.errors import KernelMissing, LabError, NotLinux, NotRoot, ToolsMissing
from gpuaas_lab.hosts import Lab
from gpuaas_lab.stack import up as flow
from gpuaas_lab.stack.platform import Stack
from gpuaas_lab.stack.supervisor import supervise as keep_running

app = App(name="stack", help="The whole platform on this machine.")
out, err = Console(highlight=False), Console(stderr=True, highlight=False)
NoLab = Annotated[bool, Parameter(name="--no-lab", negative=())]


def _root() -> Path:
    return Path(os.environ.get("GPUAAS_ROOT", "var")).absolute()


@app.command
def up(*, port: int = 8080, no_lab: NoLab = False, listen: str | None = None) -> None:
    """Start everything, deploy a cluster and run a job."""
    if no_lab:
        flow.up_without_lab(_root(), port, listen)
    else:
        flow.up_with_lab(_root(), port)


@app.command
def down(*, no_lab: NoLab = False) -> None:
    """Stop everything; with the lab, also remove its hosts and files."""
    flow.down(_root(), lab=not no_lab)


@app.command
def status() -> None:
    """Show what runs, and where the logs are."""
    stack = Stack(_root())
    table = Table("part", "state", "log", box=None, pad_edge=False)
    for name in ("supervisor", *stack.folder.wanted()):
        process = stack.folder.process(name)
        state = f"[green]running[/green] (pid {process.pid})" if process else "[red]not running[/red]"
        table.add_row(name, state, str(stack.folder.log(name)))
    lab = flow.lab_name(_root())
    for host in Lab(lab).status() if lab else []:
        table.add_row(f"host {host.name}", f"{host.state} at {host.address}", host.console)
    out.print(table)


@app.command
def logs(*, lines: int = 40) -> None:
    """Show the newest lines of every log."""
    for path in sorted((_root() / "run" / "logs").glob("*.log")):
        out.print(f"[bold]== {path}[/bold]")
        out.print("\n".join(path.read_text(errors="replace").splitlines()[-lines:]), markup=False, soft_wrap=True)


@app.command(show=False)
def supervise(root: Path) -> None:
    keep_running(root)


def main() -> int:
    try:
        app()
    except LabError as error:
        err.print(f"[red]{error.sentence}[/red]\nWay out: {error.way_out}", soft_wrap=True)
        if isinstance(error, NotRoot | NotLinux | ToolsMissing | KernelMissing):
            err.print("Or without lab hosts, with machines of your own: make up LAB=no")
        return error.exit
    except subprocess.TimeoutExpired as error:
        err.print(f"[red]{error}[/red]\nWay out: look at `make logs`, then run it again.", soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
