"""The destructive commands, and the question that each asks first. Called by main.

On a terminal the command asks; without one it needs --yes, so that a script, a CI job or an agent never destroys
anything by accident. A command is in the table if it takes the `Destroying` options.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from . import failures
from .failures import CliError

if TYPE_CHECKING:
    from collections.abc import Sequence

CONSEQUENCES = {
    "instance decommission": "",  # asks by itself: it names the nodes
    "member remove": "The member is removed from its node; work running there is waited for or ends.",
    "member replace": "The old member is removed from its node; work running there is waited for or ends.",
    "member tombstone": "The member counts as removed; its node is not cleaned and gets an orphan record.",
    "operation abandon": "The operation ends without evidence; nodes may need cleaning by hand.",
    "secret delete": "Every version of the secret is deleted.",
    "credential revoke": "Every version of the key is revoked, and instances that use it fail.",
    "credential unbind": "The instance's controller can no longer use the key.",
    "grant revoke": "The certificate is revoked and its sessions end.",
    "allocation release": "The project releases the node, and the node is wiped.",
    "node retire": "The node leaves the platform; its keys and tokens stop working.",
    "node wipe": "The node's data is deleted, or the node counts as clean.",
    "pool delete": "The pool is deleted.",
    "sku delete": "The SKU is deleted.",
    "region delete": "The region is deleted.",
    "app withdraw": "The version can no longer be deployed.",
    "entitlement disable": "The project can no longer deploy the app.",
    "policy remove": "The policy is deleted; its restrictions end.",
    "artifact withdraw": "The artifact is no longer delivered to any node.",
    "artifact-source disable": "Nothing is delivered from the source until it is enabled again.",
    "artifact-source remove": "The source is deleted, with its credential.",
    "iam unbind": "The role is revoked at once.",
    "iam delete-role": "The role is deleted.",
    "iam revoke-invitation": "The invitation link stops working.",
    "deny-rule remove": "What the rule denied is allowed again to everyone whose role permits it.",
    "user disable": "The user is signed out everywhere and cannot sign in.",
    "delegation revoke": "The service account loses the delegated permissions.",
    "identity-provider delete": "Its users can no longer sign in through it.",
    "session revoke": "The session ends.",
    "service-account retire-key": "Programs that use the key can no longer sign in.",
    "service-account disable": "Programs that use the account are refused at once.",
    "service-account delete": "The account is deleted with its keys, tokens and roles.",
}


def confirm(command: Sequence[str], named: Sequence[object]) -> None:
    """Ask for confirmation if the command is destructive. Raises CliError with exit code 2, before anything is sent, if
    the person declines or there is no terminal."""
    name = " ".join(command)
    if name not in CONSEQUENCES:
        return
    if not sys.stdin.isatty():
        way_out = "Add --yes if this is what you want. On a terminal the command asks instead."
        sentence = f"gpuaas {name} needs a confirmation, and there is no terminal to ask on."
        raise CliError(sentence, way_out, failures.USAGE)
    if consequence := CONSEQUENCES[name]:
        about = " ".join(str(word) for word in (*command, *named) if word is not None)
        ask(f"{about}: {consequence}", "Continue? [y/N] ", ("y", "yes"))


def ask(consequence: str, question: str, answers: Sequence[str]) -> None:
    """Ask the question on stderr, so that stdout contains only data. Raises CliError if the reply is not one of
    `answers`."""
    print(f"{consequence}\n{question}", end="", file=sys.stderr, flush=True)
    if input().strip() not in answers:
        raise CliError("Nothing was done.", "", failures.USAGE)
