"""`gpuaas ssh INSTANCE MEMBER [-- COMMAND…]`: onto the machine of a member, with a certificate for minutes."""

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
    """Open a shell on the machine of a member, or run a command there. The exit code is ssh's.

    You are a user without rights there: you can look, and ask the app. Everything you start ends with the session. Who
    is in there is on record (`gpuaas grant list`), and can be put out (`gpuaas grant revoke`).

    Example: gpuaas ssh train controller/0
    Example: gpuaas ssh train worker/1 -- nvidia-smi
    Example: gpuaas ssh train worker/1 --tty -- top

    Parameters
    ----------
    command
        What to run there, after `--`; a shell if left out.
    tty
        With a terminal, for a command that draws on it.
    print_
        Connect by yourself: prints the command, and leaves the key and the certificate, which opens one session in the
        next five minutes.
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
        _say_why(to.address, to.id)
    else:
        _hand_back(common, where[0], to.id)
    return code


def _hand_back(common: Changing, project_id: str, grant: str) -> None:
    """Whoever has left is no longer on record as being there. If it cannot be said now, it ends by itself."""
    from gpuaas_sdk.client.errors import GpuaasError

    asked = sdk.Calls.revoke_access_grant.request(project_id, grant, reason="its session was closed")
    with suppress(GpuaasError, CliError), session(replace(common, idempotency_key=None)) as at:
        at.client.send(replace(asked, patience_s=5.0, retries=False))


def _say_why(address: str, grant: str) -> None:
    print(
        f"ssh ended with {ssh_exec.REFUSED}: it did not get in, or the connection broke.\n"
        f"What you can do: see above what ssh says. Is {address} reachable from here (a ProxyJump in your ssh settings "
        f"is used)? Was {grant} revoked (gpuaas grant list --revoked)? Is the machine's agent new enough (gpuaas node "
        "show)?",
        file=sys.stderr,
    )
