"""The command that installs the agent on a machine and enrols it, for `gpuaas node enrol` and `gpuaas node readmit`.

The command needs only python3, as the agent does. It contains the digest of the installer, and the installer contains
the digest of the archive, so only the announced program runs. The token is read from standard input, where `ps` does
not show it.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from . import show
from .options import Common

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import AgentView, EnrolmentView

SHOWN = ("id", "node_name", "token", "expires_in", "enrol_url_path")


def line(api: str, enrolment: EnrolmentView, agent: AgentView) -> str:
    url = api.rstrip("/") + agent.installer_path
    program = (
        f'import hashlib,urllib.request as r;s=r.urlopen("{url}").read();'
        f'hashlib.sha256(s).hexdigest()=="{agent.installer_sha256}" or exit("not the announced installer");exec(s)'
    )
    words = ["python3", "-c", program, api, enrolment.node_name]
    return f"echo {shlex.quote(enrolment.token)} | {shlex.join(words)}"


def print_command(common: Common, enrolment: EnrolmentView, line: str, then: str) -> None:
    if common.json:
        return show.as_json({"run_on_the_machine": line} | {name: getattr(enrolment, name) for name in SHOWN})
    minutes = enrolment.expires_in // 60
    print(
        f"{enrolment.node_name} can enrol once, within {minutes} minutes. Run this command on the machine, as root:\n"
    )
    print(f"  {line}\n")
    print("It downloads the agent, verifies its digest and starts it. The machine needs Debian 12, python3,")
    print("python3-cryptography and openssh-server (missing packages are installed from its sources), and must reach")
    print(f"the platform at this address. {then}")
    return None
