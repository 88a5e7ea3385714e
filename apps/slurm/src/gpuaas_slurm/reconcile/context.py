"""The shared context of this app's reconcilers: its StepContext, the facts of hosts, and the platform's package set."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

import structlog
from gpuaas_sdk import TelemetrySender, Work
from gpuaas_sdk.host_steps.context import StepContext
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Answer, Host, together, unreadable
from gpuaas_sdk.host_steps.profile import HostProfile

from gpuaas_slurm.facts import HostFacts, look
from gpuaas_slurm.profile import PROFILE

log = structlog.get_logger()
PACKAGE_SET = "slurm-packages"  # the artifact's name


@dataclass(frozen=True)
class PackageSet:
    id: str
    sha256: str


async def newest_package_set(work: Work) -> PackageSet | None:
    """Return the newest package set that the project may use; None if there is none."""
    known = (await work.client.list_project_artifacts(work.project_id, name=PACKAGE_SET, limit=100)).items
    usable = [one for one in known if one.allowed and one.state == "registered"]
    newest = max(usable, key=lambda one: one.created_at, default=None)
    return PackageSet(newest.id, newest.sha256) if newest else None


async def fetch_by_agent(work: Work, allocation_id: str, artifact_id: str, path: str) -> None:
    """Let the platform's agent download an artifact to the host. The file appears once its digest and size are
    verified. Raises StepFailed if the download fails."""
    task = await work.task(allocation_id, "fetch_artifact", {"artifact_id": artifact_id, "path": path, "mode": "0644"})
    if task.state != "succeeded":
        why = task.message or "The machine's agent did not begin the task."
        raise StepFailed("packages_not_delivered", f"The package set did not reach the host: {why}", {"task": task.id})


@dataclass
class Tools(StepContext):
    """The StepContext of this app; tests replace its functions."""

    profile: HostProfile = PROFILE
    patience_s: float = field(default_factory=lambda: float(os.environ.get("GPUAAS_SLURM_UNREACHABLE_S", "60")))
    package_set: Callable[[Work], Awaitable[PackageSet | None]] = newest_package_set
    fetch: Callable[[Work, str, str, str], Awaitable[None]] = fetch_by_agent  # allocation, artifact, path on the host
    slugs: dict[str, str | None] = field(default_factory=dict)
    facts: dict[str, HostFacts] = field(default_factory=dict)  # by allocation, as last read; see prefetch.py
    telemetry: TelemetrySender | None = None

    def forget(self, allocations: Iterable[str]) -> None:
        """Drop the cached facts of hosts that leave the cluster."""
        for one in allocations:
            self.facts.pop(one, None)

    async def project_slug(self, work: Work) -> str | None:
        """Return the project's slug, read once per project; None if the controller may not read it (accounts are then
        named by project id)."""
        if work.project_id not in self.slugs:
            try:
                self.slugs[work.project_id] = (await work.client.get_project(work.project_id)).slug
            except Exception as error:
                log.warning("cannot read the project", project_id=work.project_id, error=str(error))
                self.slugs[work.project_id] = None
        return self.slugs[work.project_id]


def declared_gpus(work: Work, allocation_id: str) -> tuple[str, ...]:
    """Return the GPU device files that the node reported when it enrolled."""
    reported = [m.facts for m in work.members() if m.allocation_id == allocation_id and m.facts]
    paths = [str(gpu.get("path", "")) for gpu in (reported[0].get("gpus") or [])] if reported else []
    return tuple(path for path in paths if path.startswith("/dev/"))


async def read_facts(hosts: Mapping[str, Host]) -> dict[str, HostFacts]:
    """Fence every host with the claim and read its facts."""
    answers = await together(*(read_facts_and_more(host) for host in hosts.values()))
    return {allocation_id: facts for allocation_id, (facts, _) in zip(hosts, answers, strict=True)}


async def read_facts_and_more(host: Host, more: str = "") -> tuple[HostFacts, Answer]:
    facts, answer = await look(host, more)
    if facts is None:
        raise unreadable(host, answer)
    return facts, answer


def untouched(work: Work, facts: Mapping[str, HostFacts]) -> frozenset[str]:
    """Return the allocations on whose hosts no step was done yet: they lack the note that the first deploy step
    writes."""
    return frozenset(a for a, one in facts.items() if work.instance.id not in one.owners)
