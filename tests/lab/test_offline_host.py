"""A bare host whose only way out is the core: it gets its packages, becomes a cluster, and is given back bare."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuaas_lab.stack.platform import program

from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(16)]

HOST = "offline1"  # a host of its own: it stays bare

# Everything that came for Slurm goes, as if the machine had been installed without it.
BARE = """
apt-mark auto $(dpkg-query -W -f='${Package} ') >/dev/null
apt-mark manual systemd systemd-sysv openssh-server sudo iproute2 iputils-ping procps ca-certificates python3 \
  python3-cryptography >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get -qy -o APT::AutoRemove::RecommendsImportant=false \
  -o APT::AutoRemove::SuggestsImportant=false autoremove --purge >/dev/null
rm -rf /var/lib/mysql
"""


@pytest.fixture
def version(ground: Ground) -> Iterator[str]:
    """Of the package set that comes to the platform's store; the tests that lack packages need it to be away again."""
    yield "22.05.8"
    for one in ground.demo.boss.list_project_artifacts(ground.research, name="slurm-packages", limit=100).items:
        if one.version == "22.05.8":
            ground.demo.boss.withdraw_tenant_artifact(ground.demo.tenant_id, one.id, reason="a test made it")


def test_a_host_with_no_route_but_to_the_core_becomes_a_cluster_and_is_given_back(
    ground: Ground, tmp_path: Path, version: str
) -> None:
    ground.lab.up(1, prefix=HOST[:-1])
    ground.bring(HOST)
    ground.on_host(HOST, "bash", "-c", BARE, timeout=400)
    before = packages(ground)
    assert "slurmctld" not in before
    refused, operation = ground.deploy("no-packages", HOST)
    failed = ground.ended(operation.id)
    assert failed.error
    assert failed.error.code == "package_missing"
    assert "gpuaas-slurm packages build" in failed.error.way_out
    file = tmp_path / "slurm-packages.tar"
    words = [program("gpuaas-slurm"), "packages", "build", str(file)]
    built = subprocess.run(words, capture_output=True, text=True, timeout=400, check=True)
    assert "gpuaas artifact push" in built.stdout
    pushed = ground.cli("artifact", "push", str(file), "--name", "slurm-packages", "--version", version)
    assert pushed.returncode == 0, pushed.stderr
    retried = ground.demo.boss.retry_operation(ground.research, failed.id)
    wait_until(lambda: ground.lab.exec(HOST, ["pgrep", "-x", "dpkg"], timeout=60).exit == 0, 240, "packages to come")
    ground.kill("slurm-controller")  # its successor has the session ended in which dpkg runs
    done = ground.ended(retried.operation.id)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 30)}"
    assert ground.as_user(HOST, "srun", "--gres=gpu:1", "hostname").strip() == HOST
    gone = ground.gone(ground.instance(refused.id))
    checks = gone.evidence[ground.allocations[HOST]]["checks"]
    assert all(check["ok"] for check in checks)
    assert "packages" in {check["check"] for check in checks}
    assert packages(ground) == before, "every package that came with the cluster is gone again"


def packages(ground: Ground) -> set[str]:
    text = ground.on_host(HOST, "dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\\n")
    return {line.split()[0] for line in text.splitlines() if line.split()[1].startswith("i")}
