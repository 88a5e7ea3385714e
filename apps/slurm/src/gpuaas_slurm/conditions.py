"""Checks of a host, each with a result (ok, sentence). Preflight runs them before anything is changed.

A sentence is written for the person who deploys the cluster. Every check runs on every host, and all failed ones are
reported at once; the first one determines the error code.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpuaas_slurm.facts import PORTS, PROGRAMS, HostFacts
from gpuaas_slurm.plan import UNIX_USER

DISK_NEEDED_KB = {"/var/lib": 262_144, "/var/log": 16_384, "/etc": 4_096, "/tmp": 4_096}  # noqa: S108
SKEW_ALLOWED_S = 30.0


@dataclass(frozen=True)
class Question:
    code: str
    ask: Callable[[HostFacts, str], tuple[bool, str]]


def packages_present(facts: HostFacts, _: str) -> tuple[bool, str]:
    if not facts.missing:
        return True, "Every program that the cluster needs is installed."
    packages = sorted({PROGRAMS[p] for p in facts.missing if p in PROGRAMS})
    return False, (
        f"{facts.hostname} lacks the package{'s' if len(packages) > 1 else ''} {', '.join(packages)}. "
        f"On the host: apt-get install --no-install-recommends {' '.join(packages)}"
    )


def disk_free(facts: HostFacts, _: str) -> tuple[bool, str]:
    for path, free in facts.disk_kb.items():
        needed = max((kb for want, kb in DISK_NEEDED_KB.items() if _holds(path, want, facts)), default=0)
        if free < needed:
            return False, (
                f"The file system {path} of {facts.hostname} has {free // 1024} MB free; "
                f"the cluster needs {needed // 1024} MB."
            )
    return True, "There is room on the disks."


def _holds(mount: str, path: str, facts: HostFacts) -> bool:
    """Return True if `path` lies on this mount: among the mount points that contain the path, it is the longest."""
    over = [m for m in facts.disk_kb if path == m or path.startswith(m.rstrip("/") + "/")]
    return bool(over) and max(over, key=len) == mount


def clock_right(facts: HostFacts, _: str) -> tuple[bool, str]:
    if abs(facts.skew_s) <= SKEW_ALLOWED_S:
        return True, f"The clock is {abs(facts.skew_s):.1f} s off, which is fine."
    way = "ahead" if facts.skew_s > 0 else "behind"
    return False, f"The clock of {facts.hostname} is {abs(facts.skew_s):.0f} s {way}; munge refuses that."


def no_other_cluster(facts: HostFacts, instance_id: str) -> tuple[bool, str]:
    if facts.conf_instance is not None and facts.conf_instance != instance_id:
        whose = facts.conf_instance or f"cluster {facts.conf_cluster or '?'}, not made by GPUaaS"
        return False, f"{facts.hostname} already has a Slurm configuration (of {whose})."
    others = [o for o in facts.owners if o != instance_id]
    if others:
        return False, f"{facts.hostname} still holds the remains of another cluster ({others[0]})."
    if facts.schema and instance_id not in facts.owners:
        return False, f"{facts.hostname} already has a Slurm accounting database that is not of this cluster."
    return True, "No other Slurm cluster is on the host."


def ports_free(facts: HostFacts, instance_id: str) -> tuple[bool, str]:
    for port, unit in PORTS.items():
        ours = instance_id in facts.owners and facts.units.get(unit) in ("active", "activating")
        if port in facts.ports and not ours:
            who = facts.ports[port] or "another program"
            return False, f"Port {port} of {facts.hostname}, needed by {unit}, is taken by {who}."
    return True, "The ports of Slurm are free."


def gpus_present(facts: HostFacts, _: str) -> tuple[bool, str]:
    missing = [path for path in facts.declared_gpus if path not in facts.gpus]
    if missing:
        return False, f"{facts.hostname} should have the GPU {missing[0]}, but there is no such device file."
    return True, f"{len(facts.gpus)} GPU device files are there."


def cgroup_there(facts: HostFacts, _: str) -> tuple[bool, str]:
    """Check that control groups are mounted at /sys/fs/cgroup. slurmd needs the mount even if it confines jobs without
    cgroups."""
    if facts.cgroup == "sysfs":
        return False, f"No control groups are mounted at /sys/fs/cgroup of {facts.hostname}; slurmd needs the mount."
    return True, f"Jobs are held together with {facts.confinement}."


def names_apart(names: Sequence[str]) -> Question:
    """Return a check that host names are unique: Slurm's clients treat two hosts with the same name as one host."""

    def name_alone(facts: HostFacts, _: str) -> tuple[bool, str]:
        if list(names).count(facts.hostname) > 1:
            return False, f"More than one of the hosts is called {facts.hostname}; rename one."
        return True, f"No other host of the cluster is called {facts.hostname}."

    return Question("preflight_failed", name_alone)


def same_uid(uid: int) -> Question:
    """Return a check that the cluster's user has, or can get, this uid on a host. Slurm identifies users by uid:
    another uid is another user."""

    def uid_agrees(facts: HostFacts, _: str) -> tuple[bool, str]:
        if facts.uid is not None and facts.uid != uid:
            return False, f"The user {UNIX_USER} has uid {facts.uid} on {facts.hostname}; the cluster needs {uid}."
        if facts.uid is None and uid in facts.taken_uids:
            return False, f"On {facts.hostname} the uid {uid}, which the cluster's user has, belongs to another user."
        return True, f"The user {UNIX_USER} has or can have uid {uid}."

    return Question("preflight_failed", uid_agrees)


def same_confinement(kinds: tuple[str, ...]) -> Question:
    def confinement_fits(facts: HostFacts, _: str) -> tuple[bool, str]:
        if facts.confinement in kinds:
            return True, "Jobs are held together here as on the other workers."
        wanted = " or ".join(kinds)
        return False, f"{facts.hostname} offers {facts.confinement}; the workers of this cluster use {wanted}."

    return Question("preflight_failed", confinement_fits)


PREFLIGHT = (
    Question("package_missing", packages_present),
    Question("disk_full", disk_free),
    Question("clock_wrong", clock_right),
    Question("preflight_failed", gpus_present),
    Question("preflight_failed", cgroup_there),
    Question("preflight_failed", no_other_cluster),
    Question("port_in_use", ports_free),
)


# Of a worker that was one already: what may have changed since, and would keep its slurmd from coming back.
COMING_BACK = (Question("clock_wrong", clock_right), Question("gpus_missing", gpus_present))


def ask(facts: HostFacts, instance_id: str, questions: Iterable[Question] = PREFLIGHT) -> list[dict[str, object]]:
    """Run the checks on the facts of a host. Returns a row per check for the report."""
    rows: list[dict[str, object]] = []
    for question in questions:
        ok, sentence = question.ask(facts, instance_id)
        rows.append({"check": question.ask.__name__, "ok": ok, "sentence": sentence, "code": question.code})
    return rows
