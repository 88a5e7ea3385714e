"""The recipe on real hosts, without a core: what it builds, what it refuses, what it leaves behind (nothing)."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from gpuaas_sdk import Again, Done, Failed
from gpuaas_sdk.client.errors import StaleClaim
from gpuaas_slurm.slurm.daemons import STOP_DATABASE

pytestmark = pytest.mark.lab
CLEAN = "ss -ltnH; pgrep -l 'slurm|munged|mariadbd'; ls -d /etc/slurm/slurm.conf /etc/munge/munge.key /var/lib/gpuaas-slurm; id gpuaas"


@pytest.fixture(scope="module")
def lab() -> Iterator:
    from gpuaas_lab.hosts import Lab

    made = Lab("slurmtest")
    made.up(1, gpus=2)
    yield made
    made.down()


@pytest.fixture
async def bed(lab, tmp_path: Path) -> AsyncIterator:
    from apps.slurm.tests.support.slurm_on_lab import Bed

    made = Bed(lab, "gpu1", tmp_path)
    yield made
    made.on = True
    outcome = await made.decommission()
    assert isinstance(outcome, Done), outcome


def acts(bed) -> list[str]:
    return [json.loads(line)["step"] for line in bed.sh("cat /var/lib/gpuaas-slurm/journal.jsonl").splitlines()]


def failed(outcome: object) -> Failed:
    assert isinstance(outcome, Failed), outcome
    return outcome


async def test_a_deployed_cluster_runs_jobs_and_a_second_run_changes_nothing(bed) -> None:
    outcome = await bed.deploy(inputs={"gpu_type": "a100", "partition": "gpu"})
    assert isinstance(outcome, Done), outcome
    assert outcome.runtime_version == "22.05.8"
    assert bed.sh("cd /tmp && runuser -u gpuaas -- srun --gres=gpu:a100:2 printenv CUDA_VISIBLE_DEVICES") == "0,1"
    assert bed.sh("stat -c %a:%U /etc/munge/munge.key") == "400:munge"
    assert bed.sh("grep -ci pmix /var/log/slurm/*.log | grep -v ':0' || true") == ""
    first = acts(bed)
    assert len(first) == len(set(first)), "a step acted twice"
    again = await bed.deploy(inputs={"gpu_type": "a100", "partition": "gpu"})
    assert isinstance(again, Done), again
    proofs = ["first_job", "gpu_job", "access", "batch_job"]
    assert sorted(acts(bed)[len(first) :]) == sorted(proofs), "only the proofs are made again"


async def test_a_wrong_account_is_refused_at_submit(bed) -> None:
    assert isinstance(await bed.deploy(), Done)
    output = bed.sh("cd /tmp; runuser -u gpuaas -- srun -A other hostname 2>&1 || true")
    assert "Invalid account" in output


async def test_the_cluster_comes_back_after_a_power_cut(bed) -> None:
    assert isinstance(await bed.deploy(), Done)
    bed.lab.poweroff("gpu1")
    bed.lab.boot("gpu1")
    wait = "for i in $(seq 900); do sinfo -h -o %t 2>/dev/null | grep -qE 'idle|mix' && exit 0; sleep 0.1; done; exit 1"
    bed.sh(wait)
    assert bed.sh("cd /tmp && runuser -u gpuaas -- srun hostname") == "gpu1"


async def test_decommission_leaves_nothing_and_says_so(bed) -> None:
    assert isinstance(await bed.deploy(), Done)
    bed.sh("cd /tmp && runuser -u gpuaas -- sbatch --wrap 'sleep 600' && sleep 1")
    outcome = await bed.decommission()
    assert isinstance(outcome, Done), outcome
    assert outcome.evidence is not None
    (evidence,) = outcome.evidence.values()
    assert all(row["ok"] for row in evidence["checks"])
    left = bed.lab.exec("gpu1", ["bash", "-c", CLEAN], 60).text
    assert not [line for line in left.splitlines() if ":22 " not in line], left


def test_a_database_that_is_still_starting_is_stopped_without_blocking(lab) -> None:
    """With a plain `systemctl stop`, about one start in ten ends with a MariaDB server that never stops."""
    rounds = "for pause in 0.1 0.15 0.2 0.25 0.3 0.35 0.4 0.45 0.5; do systemctl start --no-block mariadb; sleep $pause; stop_database; done"
    done = lab.exec("gpu1", ["bash", "-c", f"{STOP_DATABASE}{rounds}; pgrep -x mariadbd"], timeout=300)
    assert (done.exit, done.text) == (1, ""), done
    assert "SIGKILL" not in lab.exec("gpu1", ["journalctl", "-u", "mariadb", "-o", "cat"], timeout=60).text


async def test_a_host_never_touched_is_decommissioned_with_evidence(bed) -> None:
    outcome = await bed.decommission()
    assert isinstance(outcome, Done), outcome
    assert "no trace" in json.dumps(outcome.evidence)


async def test_another_cluster_is_neither_overwritten_nor_removed(bed) -> None:
    bed.sh("echo ClusterName=physics >/etc/slurm/slurm.conf")
    try:
        outcome = failed(await bed.deploy())
        assert (outcome.code, "physics" in outcome.why) == ("preflight_failed", True)
        assert isinstance(await bed.decommission(), Done)
        assert bed.sh("cat /etc/slurm/slurm.conf") == "ClusterName=physics"
    finally:
        bed.sh("rm /etc/slurm/slurm.conf")


async def test_a_taken_port_is_named(bed) -> None:
    bed.sh("systemd-run -q --unit=squatter python3 -m http.server 6817")
    bed.sh("until ss -ltnH 'sport = :6817' | grep -q .; do sleep 0.1; done")
    try:
        outcome = failed(await bed.deploy())
        assert (outcome.code, "6817" in outcome.why) == ("port_in_use", True)
    finally:
        bed.sh("systemctl stop squatter")


async def test_a_daemon_that_cannot_start_ends_with_its_last_words_and_a_retry_goes_on(bed) -> None:
    bed.sh(
        "mv /usr/sbin/slurmdbd /usr/sbin/slurmdbd.away; printf '#!/bin/sh\\necho my last words >&2; exit 1\\n' >/usr/sbin/slurmdbd; chmod 755 /usr/sbin/slurmdbd"
    )
    try:
        outcome = failed(await bed.deploy())
    finally:
        bed.sh("mv /usr/sbin/slurmdbd.away /usr/sbin/slurmdbd")
    assert outcome.code == "accounting_not_ready"
    assert "my last words" in json.dumps(outcome.adapter_detail)
    assert "gpuaas operation retry" in outcome.way_out
    assert isinstance(await bed.deploy(), Done)


async def test_an_older_claim_is_refused_by_the_host(bed) -> None:
    named = "op_01k9lab8888888888888888888"
    assert isinstance(await bed.deploy(operation=named, epoch=3), Done)
    before = acts(bed)
    with pytest.raises(StaleClaim):
        await bed.deploy(operation=named, epoch=2)
    assert acts(bed) == before
    assert isinstance(await bed.decommission(operation="op_01k9lab9999999999999999999"), Done)
    with pytest.raises(StaleClaim):
        await bed.deploy(operation=named, epoch=4)
    bed.sh("rm -rf /run/gpuaas-slurm")


async def test_a_host_that_does_not_answer_is_waited_for_and_then_given_up(bed) -> None:
    import asyncio

    bed.on = False
    named = "op_01k9lab0000000000000000999"
    assert isinstance(await bed.deploy(operation=named), Again)
    await asyncio.sleep(0.6)
    outcome = failed(await bed.deploy(operation=named))
    assert (outcome.code, outcome.retryable) == ("host_unreachable", True)
    await asyncio.sleep(0.1)
    assert isinstance(await bed.decommission(operation=named.replace("999", "998")), Again)
    await asyncio.sleep(0.6)
    assert "gpuaas operation abandon" in failed(await bed.decommission(operation=named.replace("999", "998"))).way_out


async def test_a_full_disk_is_named_before_anything_is_changed(lab, tmp_path: Path) -> None:
    from apps.slurm.tests.support.slurm_on_lab import Bed

    lab.up(1, prefix="small", disk_mb=512)
    bed = Bed(lab, "small1", tmp_path)
    lab.fill_disk("small1")
    outcome = failed(await bed.deploy())
    assert (outcome.code, "small1" in outcome.why) == ("disk_full", True)
    lab.free_disk("small1")
    assert isinstance(await bed.decommission(), Done)


async def test_a_disk_that_fills_up_in_the_middle_is_named_and_a_retry_goes_on(lab, tmp_path: Path) -> None:
    from apps.slurm.tests.support.slurm_on_lab import Bed

    lab.up(1, prefix="small", disk_mb=512)
    bed = Bed(lab, "small1", tmp_path)
    bed.sh("mount -t tmpfs -o size=1m tmpfs /etc/slurm && fallocate -l 1020k /etc/slurm/filler")
    outcome = failed(await bed.deploy())
    assert (outcome.code, "/etc/slurm" in outcome.why) == ("disk_full", True)
    bed.sh("rm /etc/slurm/filler")
    assert isinstance(await bed.deploy(), Done)
    assert isinstance(await bed.decommission(), Done)
    bed.sh("umount /etc/slurm")


async def test_a_missing_package_is_named_with_its_cure(lab, tmp_path: Path) -> None:
    from apps.slurm.tests.support.slurm_on_lab import Bed

    lab.up(1, prefix="bare", without_packages=["slurmdbd"])
    outcome = failed(await Bed(lab, "bare1", tmp_path).deploy())
    assert outcome.code == "package_missing"
    assert "apt-get install --no-install-recommends slurmdbd" in outcome.why
