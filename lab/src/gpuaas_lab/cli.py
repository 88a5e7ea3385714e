"""The program `gpuaas-lab`, for people and scripts. It contains no logic: every command is one call of `hosts.Lab`."""

import json
import os
import sys
from dataclasses import asdict
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from gpuaas_lab import __version__
from gpuaas_lab.errors import BadName, EnrolFailed, LabError
from gpuaas_lab.hosts import Lab
from gpuaas_lab.plan import Plan

HELP = """Real hosts on this machine: own systemd, own sshd, own address, fake GPUs. Needs root on Linux.

Examples:

    gpuaas-lab up --hosts 3
    gpuaas-lab exec gpu1 -- systemctl is-active ssh
    gpuaas-lab ssh gpu2
    gpuaas-lab poweroff gpu3
    gpuaas-lab down

Several labs can live side by side: add --lab NAME, or set GPUAAS_LAB_NAME.
"""

app = App(name="gpuaas-lab", help=HELP, version=__version__, help_format="markdown")
out, err = Console(), Console(stderr=True)

LabName = Annotated[str | None, Parameter(name="--lab", help="Which lab (env GPUAAS_LAB_NAME; 'default').")]
Output = Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])]
Word = Annotated[str, Parameter(allow_leading_hyphen=True)]


def say(line: str) -> None:
    err.print(line, highlight=False, markup=False)


@app.command
def image(*, lab: LabName = None) -> None:
    """Build the image all hosts start from, unless it exists. About a minute and a half, once."""
    out.print(str(Lab(lab, say).ensure_image()), highlight=False, soft_wrap=True)


@app.command
def up(
    *,
    hosts: int = 2,
    gpus: int = 2,
    prefix: str = "gpu",
    disk: str | None = None,
    without_packages: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    api_port: Annotated[list[int] | None, Parameter(consume_multiple=True)] = None,
    subnet: str | None = None,
    timeout: float = 90,
    lab: LabName = None,
) -> None:
    """Start N hosts. Running hosts are kept; a second call is quick.

    Example: gpuaas-lab up --hosts 3 --gpus 4

    Parameters
    ----------
    hosts
        Number of hosts: PREFIX1 to PREFIXN.
    gpus
        Fake GPU devices per new host (/dev/nvidia0...).
    prefix
        Name prefix of new hosts.
    disk
        Limit the disk of new hosts, e.g. 512M or 2G (for tests with a full disk).
    without_packages
        Debian packages to remove from new hosts (for tests of missing packages).
    api_port
        TCP ports of this machine that hosts may reach on the bridge address. Default 8080.
    subnet
        Network of a new lab, instead of 10.88.N.0/24.
    timeout
        Seconds a host may take to boot.
    lab
        Which lab.
    """
    options = {"gpus": gpus, "prefix": prefix, "disk_mb": megabytes(disk), "timeout": timeout, "subnet": subnet}
    found = Lab(lab, say).up(hosts, without_packages=without_packages or (), api_ports=api_port, **options)
    out.print(f"{len(found)} hosts up: {', '.join(f'{host.name} {host.address}' for host in found)}", highlight=False)


@app.command
def down(*, image: bool = False, lab: LabName = None) -> None:
    """Remove the lab: hosts, network, mounts, files. Safe to repeat, also after a crash.

    Parameters
    ----------
    image
        Remove the cached image too (rebuilding takes a minute and a half).
    """
    Lab(lab, say).down(image_too=image)
    out.print("The lab and its image were removed." if image else "The lab was removed; the image is kept.")


@app.command
def status(*, output: Output = "table", lab: LabName = None) -> None:
    """Show the hosts. Example: gpuaas-lab status -o json"""
    chosen = Lab(lab, say)
    found = chosen.status()
    if output == "json":
        record = chosen.state.load_lab()
        hosts = [asdict(host) for host in found]
        print(json.dumps({"lab": chosen.name, "network": network(record.plan) if record else None, "hosts": hosts}))
        return
    table = Table("host", "address", "state", "gpus", "disk")
    for host in found:
        table.add_row(
            host.name, host.address, host.state, str(host.gpus), f"{host.disk_mb} MB" if host.disk_mb else "-"
        )
    out.print(table if found else "No hosts. Start some: gpuaas-lab up --hosts 3")


@app.command
def ssh(host: str, *command: Word, lab: LabName = None) -> None:
    """Open a root shell on a host, or run a command with this terminal.

    It goes through the host's namespaces, not through sshd: hosts trust only the platform's SSH authority, and the lab
    has no key of its own. Works before the host is enrolled and when its sshd is broken.

    Example: gpuaas-lab ssh gpu1
    """
    sys.exit(Lab(lab, say).attach(host, command))


@app.command(name="exec")
def exec_(host: str, *command: Word, timeout: float = 60, lab: LabName = None) -> None:
    """Run a command as root on a host; its exit code is passed on (124 when it took longer than --timeout).

    Example: gpuaas-lab exec gpu1 --timeout 10 -- ls -l /dev/nvidia0
    """
    sys.exit(Lab(lab, say).attach(host, command or ("true",), timeout))


@app.command
def poweroff(host: str, *, lab: LabName = None) -> None:
    """Cut the power of a host: no clean shutdown. Its disk stays. Example: gpuaas-lab poweroff gpu2"""
    Lab(lab, say).poweroff(host)
    out.print(f"{host} is off.")


@app.command
def boot(host: str, *, timeout: float = 90, lab: LabName = None) -> None:
    """Power a host on: same disk, same address. Example: gpuaas-lab boot gpu2"""
    Lab(lab, say).boot(host, timeout)


@app.command
def enrol(
    *hosts: str,
    api: Annotated[str, Parameter(env_var="GPUAAS_API")],
    tenant: str,
    gpu_model: str = "lab",
    output: Output = "table",
    lab: LabName = None,
) -> None:
    """Enrol hosts: installs and starts the agent, waits until each node is ready.

    Reads the bearer token of an administrator from GPUAAS_TOKEN. Safe to repeat.

    Example: gpuaas-lab enrol --api http://10.88.0.1:8080 --tenant demo

    Parameters
    ----------
    hosts
        Which hosts; all running hosts if none is named.
    api
        The platform as the hosts see it: the bridge address, not localhost.
    tenant
        Id or slug.
    gpu_model
        Model that the fake GPUs report.
    """
    from gpuaas_lab import enrolment

    token = os.environ.get("GPUAAS_TOKEN")
    if not token:
        raise EnrolFailed("GPUAAS_TOKEN is not set.", "export GPUAAS_TOKEN=… (an administrator's bearer token)")
    with enrolment.explained():
        client = enrolment.sign_in(api, token)
        tenant_id = enrolment.tenant_id(client, tenant)
        nodes = enrolment.enrol_all(Lab(lab, say), client, tenant_id, api, hosts, gpu_model)
    if output == "json":
        print(enrolment.as_json(nodes))
    else:
        out.print(f"{len(nodes)} nodes ready: {', '.join(node.node_name for node in nodes)}", highlight=False)


def megabytes(text: str | None) -> int | None:
    if text is None:
        return None
    number, unit = text[:-1], text[-1:].upper()
    if not number.isdigit() or unit not in "MG":
        raise BadName("disk size", text, "a number and M or G, e.g. 512M")
    return int(number) * (1024 if unit == "G" else 1)


def network(plan: Plan) -> dict[str, str]:
    return {"bridge": plan.bridge, "gateway": str(plan.gateway), "subnet": str(plan.subnet)}


def main(arguments: list[str] | None = None) -> None:
    try:
        app(arguments)
    except LabError as error:
        err.print(f"[red]error:[/red] {error.sentence}", highlight=False)
        err.print(f"[bold]way out:[/bold] {error.way_out}", highlight=False)
        sys.exit(error.exit)
    except KeyboardInterrupt:
        err.print("interrupted; `gpuaas-lab down` removes the lab")
        sys.exit(130)
