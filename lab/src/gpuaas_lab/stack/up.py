"""`make up`: starts everything, deploys a Slurm cluster and runs a job, with progress. Repeating it is quick."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from gpuaas_sdk import Bearer, Client
from rich.console import Console

from gpuaas_lab.errors import LabError
from gpuaas_lab.hosts import Lab
from gpuaas_lab.stack.credentials import BOSS
from gpuaas_lab.stack.enrolled import allocate, enrol_hosts
from gpuaas_lab.stack.platform import Stack, program, wait_for
from gpuaas_lab.stack.seed import Demo, entitle, seed

INSTANCE, HOSTS = "demo", 5
HEAD, WORKERS, SPARE, OTHER = "gpu1", ("gpu2", "gpu3"), "gpu4", "gpu5"
LAB_FILE = "lab"  # in the stack's folder: the name of its lab
out = Console(highlight=False, soft_wrap=True)


@dataclass
class Progress:
    """Prints one line per finished step, with the time since the start."""

    started: float

    def __call__(self, sentence: str) -> None:
        out.print(f"[dim]{time.monotonic() - self.started:6.1f} s[/dim]  {sentence}")


def up_with_lab(root: Path, port: int) -> None:
    say = Progress(time.monotonic())
    lab = Lab(say=lambda line: say(line))
    own_lab(root, lab.name)
    lab.up(HOSTS, api_ports=[port])
    say(f"{HOSTS} lab hosts are up, each with its own systemd, sshd and address")
    space = lab.controller_namespace("ctl")
    stack = Stack(root, port, gateway=space.gateway)
    demo = _platform(stack, say, f"http://{space.gateway}:{port}")
    nodes = enrol_hosts(lab, demo, f"http://{space.gateway}:{port}")
    say(f"the agents enrolled {len(nodes)} machines with one-time tokens; the hosts trust the tenant's SSH authority")
    for host in (HEAD, *WORKERS, SPARE):
        allocate(demo, "research", nodes[host], host)
    allocate(demo, "training", nodes[OTHER], OTHER)
    say(f"project research holds {HEAD} to {SPARE}, project training holds {OTHER}")
    stack.start_controller(space.prefix, list(demo.identities.values()))
    say(f"the Slurm controller runs in the network namespace {space.name}: it reaches the API and the hosts, no more")
    cli_context(stack)
    _deploy(stack, demo)
    job = run_job(lab, "-N2")
    say("a job ran as an ordinary user: [bold]srun -N2 hostname[/bold] on gpu1 answered")
    shown = "".join(f"    [bold green]{line}[/bold green]\n" for line in sorted(job.split()))
    out.print(f"\n    $ srun -N2 hostname\n{shown}")
    grow = f"  grow it      gpuaas member add {INSTANCE} worker {SPARE}\n"
    _farewell(stack, f"  use Slurm    gpuaas access {INSTANCE}      on the host: gpuaas-lab ssh {HEAD}\n{grow}")


def up_without_lab(root: Path, port: int, listen: str | None) -> None:
    """Start only the core and the controller. `listen` is an address of this machine that others can reach."""
    say = Progress(time.monotonic())
    stack = Stack(root, port, gateway=listen)
    demo = _platform(stack, say, stack.api)
    stack.start_controller([], list(demo.identities.values()))
    say("the Slurm controller runs and waits for work")
    cli_context(stack)
    reach = "  first        make up LAB=no LISTEN=ADDRESS   (an address of this machine that yours can reach)\n"
    _farewell(
        stack,
        f"\n  There are no lab hosts (LAB=no). To bring a Debian 12 machine of your own:\n{'' if listen else reach}"
        "  invite it    gpuaas node enrol NAME          prints what to run on the machine\n"
        "  hold it      gpuaas allocation create NAME\n"
        "  use it       gpuaas instance deploy slurm --name demo --place controller=NAME\n\n",
    )


def _platform(stack: Stack, say: Progress, controller_api: str) -> Demo:
    stack.start_core()
    say(f"the core answers at {stack.api}")
    demo = seed(stack.api, stack.credentials, stack.identities, controller_api)
    publish(stack)
    entitle(demo, "slurm")
    say("tenant demo has projects research and training; the Slurm app is in the catalog, both are entitled")
    return demo


def publish(stack: Stack) -> None:
    """Publish the app through the public API, with its own program."""
    token = stack.signed_in_token("admin")
    env = os.environ | {"GPUAAS_API": stack.api, "GPUAAS_TOKEN": token}
    done = subprocess.run([program("gpuaas-slurm"), "publish"], env=env, capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        raise LabError(f"The Slurm app could not be published: {done.stderr.decode()[-800:]}", "make logs")


def cli_context(stack: Stack) -> None:
    """Sign the CLI in to this stack, so that the next commands work without a login."""
    words = [program("gpuaas"), "login", "--api", stack.api_for_others, "--email", BOSS, "--password-stdin"]
    password = stack.credentials.tenant_admin_password.encode()
    done = subprocess.run(words, input=password, env=stack.cli_env, capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        raise LabError(f"The CLI could not sign in: {done.stderr.decode()[-800:]}", "make logs")


def _deploy(stack: Stack, demo: Demo) -> None:
    project = demo.projects["research"]
    live = {one.name: one for one in demo.boss.list_instances(project, limit=200).items}
    known = live.get(INSTANCE)
    if known and known.state == "running":
        out.print(f"\nThe cluster is running already: {known.health.sentence}")
        return
    verb = ["instance", "watch", INSTANCE] if known and known.state != "failed" else None
    place = ["--place", f"controller={HEAD}", "--place", f"worker={','.join(WORKERS)}"]
    words = verb or ["instance", "deploy", "slurm", "--name", INSTANCE, "--topology", "multi_node", *place]
    if known and known.state == "failed":
        words = ["operation", "retry", str(known.last_operation_id)]
    out.print(f"\n    $ gpuaas {' '.join(words)} --project research")
    sys.stdout.flush()
    done = subprocess.run(
        [program("gpuaas"), *words, "--project", "research"], env=stack.cli_env, timeout=600, check=False
    )
    if done.returncode != 0:
        raise LabError("The cluster did not come up; the lines above say why.", "Mend it, then run make up again.")


def run_job(lab: Lab, *words: str, user: str = "gpuaas") -> str:
    """Run a job as a user of the cluster, on the controller's host. Returns its output."""
    done = lab.exec(HEAD, ["runuser", "-u", user, "--", "srun", "--time=1", *words, "hostname"], timeout=60)
    if done.exit != 0:
        raise LabError(f"srun failed: {done.error_text}", "gpuaas instance show demo --project research")
    return done.text.strip()


def _farewell(stack: Stack, next_steps: str) -> None:
    password = stack.credentials.tenant_admin_password
    environment = f"export PATH={Path(program('gpuaas')).parent}:$PATH GPUAAS_CONFIG={stack.cli_config}"
    out.print(
        f"[bold]GPUaaS is up.[/bold] The API is at {stack.api}/v1\n\n"
        f"  console      {_console(stack.api)}\n"
        f"  login        {BOSS} / {password}   (all users: {stack.root}/credentials.json)\n"
        f"  in a shell   {environment} GPUAAS_PROJECT=research\n"
        "  then         gpuaas whoami · gpuaas catalog · gpuaas instance list · gpuaas events --follow\n"
        f"{next_steps}"
        "  here         make status · make logs · make down"
    )


def _console(api: str) -> str:
    """Return the address of the web console if it was built, otherwise how to build it. Its icon is requested to find
    out."""
    with Client(api, Bearer()) as client:
        built = client.transport.http.get("/icon.svg").status_code == 200
    return f"{api}/" if built else "not built (it needs Node 20): make console, then make down and make up"


def own_lab(root: Path, name: str) -> None:
    """Record which lab this stack uses, before the lab exists, so that `down` never removes another stack's lab."""
    recorded = lab_name(root)
    if recorded not in (None, name):
        raise LabError(
            f"The stack in {root} uses the lab {recorded!r}, not {name!r}.",
            f"Set GPUAAS_LAB_NAME={recorded}, or run make down first.",
        )
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    (root / LAB_FILE).write_text(name + "\n")


def lab_name(root: Path) -> str | None:
    """The lab this stack was started with; None if it has no lab."""
    file = root / LAB_FILE
    return file.read_text().strip() if file.exists() else None


def down(root: Path, *, lab: bool) -> None:
    """Stop the stack's processes by their recorded ids; with the lab, also remove its hosts and the demo's files."""
    Stack(root).stop()
    if lab:
        if name := lab_name(root):
            Lab(name, say=lambda line: out.print(line)).down()
        _remove(root)
    out.print("GPUaaS is down." + ("" if lab else f" Its data stays in {root}."))


def _remove(root: Path) -> None:
    wait_for(lambda: not Stack(root).folder.noted(), 10, lambda: "Some processes did not end.")
    shutil.rmtree(root, ignore_errors=True)
