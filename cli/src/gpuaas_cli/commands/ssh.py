"""`gpuaas ssh INSTANCE MEMBER [-- COMMAND…]`: a shell on the host of a member, with a short-lived certificate."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Annotated

import gpuaas_sdk as sdk
from cyclopts import Parameter

from .. import failures, show, ssh_exec
from ..failures import CliError
from ..options import Changing, Flag, Instance, Member
from ..session import session
from .member import find


def ssh(
    instance: Instance,
    member: Member,
    /,
    *command: str,
    tty: Annotated[bool, Flag] = False,
    print_: Annotated[bool, Parameter(name="--print", negative=(), show_default=False)] = False,
    common: Changing = Changing(),
) -> int:
    """Open a shell on the host of a member, or run a command on the host. The exit code is the exit code of ssh.

    You are an unprivileged user on the host. Processes that you start end with the session. `gpuaas grant list` lists
    the session, and `gpuaas grant revoke` ends it.

    Example: gpuaas ssh train controller/0
    Example: gpuaas ssh train worker/1 -- nvidia-smi
    Example: gpuaas ssh train worker/1 --tty -- top

    Parameters
    ----------
    command
        Command to run, after `--`. Default: a shell.
    tty
        Allocate a terminal for the command.
    print_
        Print the ssh command instead of running it. The key and the certificate stay on disk; the certificate is valid
        for one session within five minutes.
    """
    ssh_exec.check_programs()
    with ssh_exec.private_folder(kept=print_) as folder:
        with session(common) as at:
            where = at.project_id, *find(at, instance, member)
            to = at.client.open_ssh_session(*where, ssh_public_key=ssh_exec.new_key(folder))
        words = ssh_exec.command(folder, to, command, tty=tty)
        if print_:
            if common.json:
                show.as_json({"command": words, "folder": str(folder), "grant_id": to.id, "ends_at": to.ends_at})
            else:
                print(shlex.join(words))
            return failures.OK
        code = ssh_exec.connect(words)
    if code == ssh_exec.REFUSED:
        _print_help(to.address, to.id)
    else:
        _revoke(common, where[0], to.id)
    return code


def _revoke(common: Changing, project_id: str, grant: str) -> None:
    """Revoke the certificate of a closed session. If that fails, it expires by itself."""
    from gpuaas_sdk.client.errors import GpuaasError

    asked = sdk.Calls.revoke_access_grant.request(project_id, grant, reason="its session was closed")
    with suppress(GpuaasError, CliError), session(replace(common, idempotency_key=None)) as at:
        at.client.send(replace(asked, patience_s=5.0, retries=False))


def _print_help(address: str, grant: str) -> None:
    print(
        f"ssh exited with {ssh_exec.REFUSED}: the connection failed or broke.\n"
        f"What you can do: read the message of ssh above. Check that {address} is reachable from here (ProxyJump in "
        f"your ssh settings is used), that {grant} was not revoked (gpuaas grant list --revoked), and that the "
        "node's agent is up to date (gpuaas node show).",
        file=sys.stderr,
    )
