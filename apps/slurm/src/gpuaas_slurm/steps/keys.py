"""Rotates the munge key in three steps: create it on the controller's host, copy it beside the old key to every host,
then switch all hosts at once.

munged reads its only key at start, so hosts reject each other until all have switched. Everything slow happens before,
so this lasts only as long as a restart of munged. Daemons and jobs call munged for every message; they continue and are
not restarted.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.step import Stage, Step, Task

from gpuaas_slurm.slurm import nodes

KEY, NEXT = "/etc/munge/munge.key", "/etc/munge/.munge.key.new"
NEVER_HAD_ONE = '[ ! -e "$OWN/munge.key.sha256" ]'  # a worker that failed before it got the key
LAY_DOWN = f"""
chown munge:munge {NEXT}
chmod 0400 {NEXT}
sync {NEXT}
"""

# Its hash is the mark that this operation has made its key, and the measure for every other host.
MAKE = f"""
umask 077
head -c 128 /dev/urandom >{NEXT}
{LAY_DOWN}
sha256sum <{NEXT} >"$REPORT/new_key.part"
mv "$REPORT/new_key.part" "$REPORT/new_key"
"""
READ = f"""
fence || exit 1
for f in {NEXT} {KEY}; do
  [ -s $f ] && [ "$(sha256sum <$f)" = "$(cat "$REPORT/new_key")" ] || continue
  say key "$(base64 -w0 $f)"
  exit 0
done
exit 1
"""


@dataclass(frozen=True)
class NewKey:
    """The new key of this operation, kept in memory only."""

    data: bytes

    @property
    def sum(self) -> str:
        """The SHA-256 of the key, as sha256sum prints it."""
        return f"{hashlib.sha256(self.data).hexdigest()}  -"

    def is_in(self, path: str) -> str:
        return f"""{{ [ -s {path} ] && [ "$(sha256sum <{path})" = "{self.sum}" ]; }}"""


def make() -> Step:
    return Step(
        name="new_key",
        title="Creating a new key",
        phase="preparing",
        probe='[ -s "$REPORT/new_key" ]',
        act=MAKE,
        undo="remove_key",
    )


async def made(head: Host) -> NewKey:
    answer = await head.script(READ, step="share")
    if answer.exit != 0 or not answer.last("key"):
        raise StepFailed("step_failed", f"The new key on {head.name} cannot be read.", {"host": head.name})
    return NewKey(base64.b64decode(answer.last("key")))


def bring(key: NewKey) -> Step:
    return Step(
        name="bring_key",
        title="Copying the new key to the host",
        phase="preparing",
        probe=f"{NEVER_HAD_ONE} || {key.is_in(NEXT)} || {key.is_in(KEY)}",
        act=f"umask 077\ncat >{NEXT}\n{LAY_DOWN}",
        data=key.data,
        undo="remove_key",
    )


def switch(key: NewKey) -> Step:
    return Step(
        name="switch_key",
        title="Switching to the new key",
        phase="switching",
        probe=f"""
{NEVER_HAD_ONE} ||
  {{ [ -f "$REPORT/switch_key" ] && {key.is_in(KEY)} && active munge && munge -n </dev/null | unmunge; }}
""",
        act=f"""
if ! {key.is_in(KEY)}; then
  {key.is_in(NEXT)} || {{ echo "the new key is not on this host"; exit 1; }}
  echo "{key.sum}" >"$OWN/munge.key.sha256"
  mv {NEXT} {KEY}
fi
restart munge
date >"$REPORT/switch_key"
""",
        unit="munge",
        undo="remove_key",
    )


def agree() -> Step:
    """Return the step that checks that the scheduler accepts this host's key. Both directions use the same key, so one
    direction proves both."""
    asked = nodes.list_names()
    return Step(
        name="keys_agree",
        title="Testing the new key with the scheduler",
        phase="proving",
        probe=f'{NEVER_HAD_ONE} || {{ [ -f "$REPORT/keys_agree" ] && {asked}; }}',
        act=f"""
asks() {{ {asked}; }}
wait_until 15 asks || exit 1
date >"$REPORT/keys_agree"
""",
        within=5,
        undo="remove_key",
    )


def stages(head: Host, others: Sequence[Host], key: NewKey) -> list[Stage]:
    every = (head, *others)
    laid: list[Stage] = [tuple(Task(host, bring(key)) for host in others)] if others else []
    return [*laid, tuple(Task(host, switch(key)) for host in every), tuple(Task(host, agree()) for host in every)]
