"""The one line that puts the agent on a machine and joins it. Used by `gpuaas node enrol` and `gpuaas node readmit`.

It asks of the machine only python3, which the agent needs anyway. The installer's digest is in the line and the
archive's in the installer, so what runs is what the platform said; the token goes in on standard input, out of sight of
`ps`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from . import show
from .options import Common

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import AgentView, EnrolmentView

SHOWN = ("id", "node_name", "token", "expires_in", "enrol_url_path")


def line(api: str, invited: EnrolmentView, agent: AgentView) -> str:
    url = api.rstrip("/") + agent.installer_path
    program = (
        f'import hashlib,urllib.request as r;s=r.urlopen("{url}").read();'
        f'hashlib.sha256(s).hexdigest()=="{agent.installer_sha256}" or exit("not the announced installer");exec(s)'
    )
    words = ["python3", "-c", program, api, invited.node_name]
    return f"echo {shlex.quote(invited.token)} | {shlex.join(words)}"


def tell(common: Common, invited: EnrolmentView, line: str, then: str) -> None:
    if common.json:
        return show.as_json({"run_on_the_machine": line} | {name: getattr(invited, name) for name in SHOWN})
    minutes = invited.expires_in // 60
    print(f"{invited.node_name} may join within {minutes} minutes, once. Run this line on the machine, as root:\n")
    print(f"  {line}\n")
    print("It gets the agent from the platform, checks its digest and starts it. The machine needs Debian 12, python3,")
    print("python3-cryptography and openssh-server (what is missing comes from its package sources), and must reach")
    print(f"the platform at that address. {then}")
    return None
