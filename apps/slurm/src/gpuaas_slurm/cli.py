"""The program `gpuaas-slurm`. Imports are late, so that `steps` and `manifest` do not load SSH or HTTP libraries."""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from gpuaas_slurm import PROGRAM, __version__

app = App(name="gpuaas-slurm", version=__version__, help="The Slurm app of GPUaaS.")


@app.command
def run(
    *,
    identity: Annotated[list[Path], Parameter(negative="")],
    state: Annotated[str, Parameter(env_var="GPUAAS_SLURM_STATE")],
    holder: str | None = None,
    log_level: Literal["DEBUG", "INFO", "WARNING"] = "INFO",
) -> None:
    """Run the controller until it gets SIGTERM or SIGINT.

    Parameters
    ----------
    identity
        File of a service account; give it again for each further project.
    state
        Where this controller stores its journal: a folder, or postgresql://… for controllers on several machines.
    holder
        Stable name of this installation; after a restart the controller claims its own operations again at once.
    """
    from gpuaas_sdk.host_steps.store import StateAway

    from gpuaas_slurm import controller, logs

    os.umask(0o077)  # what the controller writes is its user's alone
    for path in identity:
        if not path.is_file():
            sys.exit(f"There is no identity file {path}. Make one with ServiceAccount.generate() of gpuaas_sdk.")
    logs.set_up(log_level)
    try:
        asyncio.run(controller.run(identity, state, holder or f"gpuaas-slurm@{socket.gethostname()}"))
    except StateAway as error:
        sys.exit(f"{error} Mend that, or give another --state; no operation was taken up.")


@app.command
def publish(*, api: str | None = None) -> None:
    """Register app, version and manifest in the catalog (GPUAAS_API, GPUAAS_TOKEN)."""
    from gpuaas_sdk import Bearer, Client
    from gpuaas_sdk.client.errors import GpuaasError

    from gpuaas_slurm import publish as catalog

    address, token = api or os.environ.get("GPUAAS_API"), os.environ.get("GPUAAS_TOKEN")
    if not address or not token:
        sys.exit("Set GPUAAS_API and GPUAAS_TOKEN first.")
    try:
        with Client(address, Bearer(token)) as client:
            print(catalog.publish(client))
    except GpuaasError as error:
        sys.exit(f"{error} {error.way_out} (code {error.code}, correlation id {error.correlation_id})")


packages = App(name="packages", help="The set of Debian packages for hosts without internet.")
app.command(packages)


@packages.command(name="build")
def build_packages(file: Path = Path("slurm-packages.tar")) -> None:
    """Download every package that a bare Debian host needs, from the local apt sources, into one file.

    Parameters
    ----------
    file
        The file to write.
    """
    from gpuaas_slurm.packages.build import BuildFailed, build

    try:
        made = build(file)
    except (BuildFailed, OSError) as error:
        sys.exit(f"The package set could not be built. {error}")
    print(f"{made.file}: {made.packages} packages, {made.size / 1e6:.0f} MB, sha256 {made.sha256}")
    print(f"Next: gpuaas artifact push {made.file} --name slurm-packages --version {made.version}")


state_app = App(name="state", help="The journal of a controller.")
app.command(state_app)


@state_app.command(name="copy")
def copy_state(old: str, new: str, /) -> None:
    """Copy the journal to another place, e.g. from a folder to PostgreSQL. Stop its controllers first.

    Example: gpuaas-slurm state copy /var/lib/gpuaas-slurm postgresql://gpuaas_slurm@db.example/gpuaas_slurm

    Parameters
    ----------
    old
        Current place: a folder, or postgresql://…
    new
        New place: empty, or the result of an interrupted copy.
    """
    from gpuaas_sdk.host_steps.journal_copy import NotCopied, copy
    from gpuaas_sdk.host_steps.store import StateAway

    try:
        print(copy(old, new, PROGRAM))
    except (NotCopied, StateAway) as error:
        sys.exit(f"Nothing was lost. {error}")


@app.command
def manifest() -> None:
    """Print the manifest."""
    from gpuaas_slurm import manifest as catalog

    print(json.dumps(catalog.load(), indent=2))


@app.command
def steps(*, output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])] = "table") -> None:
    """List the steps of deploy and decommission, in order."""
    from gpuaas_slurm.steps import catalog

    listed = catalog.listing()
    if output == "json":
        print(json.dumps(listed, indent=2))
        return
    for kind, rows in listed.items():
        print(kind)
        for row in rows:
            when = f" (when {row['when']})" if row["when"] else ""
            print(f"  {row['stage']:2d}  {row['name']:16s} {row['title']}{when}")


def main() -> None:
    app()
