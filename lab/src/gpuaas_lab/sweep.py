"""Removes a lab completely, whatever state a crash, a kill -9 or a reboot left it in.

It uses three sources, none of which has to be complete: the state files, the kernel (cgroups, namespaces, links, mounts
that carry the lab's names) and the folders on disk.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from gpuaas_lab import cgroups, disks, firewall, network, plan
from gpuaas_lab.cgroups import HostCgroup
from gpuaas_lab.errors import CleanupIncomplete, LabError
from gpuaas_lab.machine import stop_processes
from gpuaas_lab.processes import wait_until
from gpuaas_lab.state import HostRecord, State

NSPAWN_RUN = Path("/run/systemd/nspawn")


def remove_lab(state: State) -> None:
    """Remove the lab; the caller holds the lock. Raises CleanupIncomplete with the list of leftovers, if there are
    any."""
    hosts = state.load_hosts()
    names = sorted(hosts.keys() | cgroups.hosts_with_cgroup(state.lab) | _folders(state))
    _cut_cables(state)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: _remove_host(state, name, hosts.get(name)), names))
    _remove_network(state)
    cgroups.remove_lab(state.lab)
    disks.erase(state.folder)
    # The kernel takes a namespace's links away a moment after the namespace.
    if not wait_until(lambda: not leftovers(state), 10, every=0.1):
        raise CleanupIncomplete(leftovers(state))
    _remove_registration(state)


def leftovers(state: State) -> list[str]:
    """Return descriptions of everything of this lab that still exists."""
    table = plan.nft_table(state.lab)
    found = [f"link {name}" for name in network.our_links(state.lab, _slot(state))]
    found += [f"network namespace {plan.namespace(state.lab, name)}" for name in network.our_namespaces(state.lab)]
    found += [f"cgroup of host {name}" for name in cgroups.hosts_with_cgroup(state.lab)]
    found += [f"mount {path}" for path in disks.mounts_below(state.folder)]
    found += [f"nftables table {table}"] if firewall.exists(table) else []
    found += [f"folder {state.folder}"] if state.folder.exists() else []
    return found


def _cut_cables(state: State) -> None:
    for link in network.our_links(state.lab, _slot(state)):
        with suppress(LabError):
            network.pull_cable(link)


def _remove_host(state: State, name: str, record: HostRecord | None) -> None:
    stop_processes(record, HostCgroup(state.lab, name))
    disks.erase(state.host_folder(name))
    state.forget_host(name)
    machine = plan.namespace(state.lab, name)
    for kind in ("propagate", "unix-export"):
        shutil.rmtree(NSPAWN_RUN / kind / machine, ignore_errors=True)


def _remove_network(state: State) -> None:
    for name in network.our_namespaces(state.lab):
        network.unplug(state.lab, name, None)
    for link in network.our_links(state.lab, _slot(state)):
        network.delete_link(link)
    firewall.remove(plan.nft_table(state.lab))


def _slot(state: State) -> int | None:
    return 0 if state.lab == plan.DEFAULT_LAB else state.slot()


def _remove_registration(state: State) -> None:
    state.release_slot()
    (state.root / f"{state.lab}.lock").unlink(missing_ok=True)
    with suppress(OSError):
        state.root.rmdir()


def _folders(state: State) -> set[str]:
    hosts = state.folder / "hosts"
    return {path.name for path in hosts.iterdir() if path.is_dir()} if hosts.is_dir() else set()
