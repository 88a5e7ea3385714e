"""No secret of a running platform is found where others look: store, logs, events, processes, and on the host.

The markers are the secrets a real stack has: people's passwords, the private keys of controllers and of the host's agent,
the key the cluster's daemons share. (Its database has no password, and a used enrolment token is on no disk.)
"""

import json
from collections.abc import Iterator

import pytest
from gpuaas_lab.canaries import Canaries, process, under

from tests.support.lab_stack import Ground

pytestmark = pytest.mark.lab

HOST = "gpu2"
ON_THE_HOST = {"/var/lib/gpuaas-agent/key.pem": slice(30, 90), "/etc/munge/munge.key": slice(0, 64)}
PRIVATE = {"credentials.json", "master.key", "cli.json"}  # files of their owners, not readable by others
LOOK = r"""
for file in $(find /var/lib/gpuaas-agent /var/lib/gpuaas-slurm /var/log /run/gpuaas* -type f 2>/dev/null); do
  case $file in */key.pem|*/journal/*) continue;; esac
  echo "== $file"; cat "$file"
done
journalctl --no-pager -o cat
for pid in /proc/[0-9]*; do tr '\0' ' ' <$pid/cmdline; echo; tr '\0' '\n' <$pid/environ; done 2>/dev/null
"""


@pytest.fixture(scope="module")
def canaries(ground: Ground) -> Iterator[Canaries]:
    instance = ground.running("sweep", HOST)
    found = Canaries()
    for name, value in vars(ground.stack.credentials).items():
        found.watch(name, value)
    for path in ground.demo.identities.values():
        _watch_strings(found, path.name, json.loads(path.read_text()))
    for path, part in ON_THE_HOST.items():
        found.watch(path, ground.lab.exec(HOST, ["cat", path], timeout=60).stdout[part])
    yield found
    ground.gone(instance)


def _watch_strings(canaries: Canaries, name: str, value: object) -> None:
    """Of an identity's file: what only it may hold."""
    for key, one in value.items() if isinstance(value, dict) else ():
        if key in ("d", "private_key") and isinstance(one, str):
            canaries.watch(f"{key} of {name}", one)
        _watch_strings(canaries, name, one)


def test_no_secret_of_the_stack_is_found_in_its_store_its_logs_or_its_processes(
    ground: Ground, canaries: Canaries
) -> None:
    assert len(canaries.marks) == 7, canaries.marks.keys()
    identities = {path.name for path in ground.demo.identities.values()}
    told = json.dumps([one.data for one in ground.events()]).encode()
    services = [ground.stack.folder.process(name) for name in ("core", "slurm-controller")]
    places = [
        *under(ground.stack.root, but=PRIVATE | identities),
        ("events", told),
        *(place for one in services if one for place in process(one.pid)),
    ]
    assert not canaries.hits(places)
    assert any(name.endswith("core.db") for name, _ in places), "the store is looked at"


def test_no_secret_is_found_on_the_host_but_in_the_file_that_keeps_it(ground: Ground, canaries: Canaries) -> None:
    seen = ground.lab.exec(HOST, ["bash", "-c", LOOK], timeout=180).stdout
    assert b"== /var/lib/gpuaas-agent/trust.json" in seen
    assert b"sbin/sshd" in seen, "the processes are looked at"
    assert not canaries.hits([("the host", seen)])
