"""The plan of a cluster: which daemon runs on which host. Pure functions of an instance and its members; reconcilers
build it first.

Everything is computed from the members. On a single-node cluster the controller and the worker share an allocation; in
a larger one, one of the workers may share it too. The code does not assume that they share it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gpuaas_sdk.host_steps.validate import BadWord

from gpuaas_slurm import settings, validate
from gpuaas_slurm.errors import BadPlan

UNIX_USER = "gpuaas"
INPUTS = {
    "cluster_name",
    "partition",
    "partitions",
    "default_time_limit_minutes",
    "max_time_limit_minutes",
    "gpu_type",
    "gpu_types",
    "slurm_conf",
}
PARTITION = {"name", "gpu_type", "default_time_limit_minutes", "max_time_limit_minutes", "priority_tier"}
GPU_RULE = {"model", "type"}
MAX = "max_time_limit_minutes"
MOST_MINUTES = 43200


class MemberLike(Protocol):
    """The part of the SDK's MemberView that the plan reads."""

    @property
    def id(self) -> str: ...
    @property
    def component_key(self) -> str: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def allocation_id(self) -> Any: ...
    @property
    def node_name(self) -> Any: ...
    @property
    def address(self) -> Any: ...
    @property
    def facts(self) -> Any: ...


@dataclass(frozen=True)
class WorkerSlot:
    """One worker member and its allocation."""

    member_id: str
    allocation_id: str
    ordinal: int
    host: str
    address: str
    models: tuple[tuple[str, str], ...] = ()  # of its GPUs, by device file, as the machine reports them

    @property
    def node(self) -> str:
        """The Slurm node name, unique by member: Slurm would silently merge two hosts with the same name."""
        tail = self.member_id.rsplit("_", 1)[-1][-8:]
        return validate.word("node", f"worker{self.ordinal}-{tail}")


@dataclass(frozen=True)
class Partition:
    """A Slurm partition. Without a GPU type it contains all workers."""

    name: str
    minutes: int
    most_minutes: int | None = None
    gpu_type: str | None = None
    tier: int | None = None


@dataclass(frozen=True)
class Plan:
    instance_id: str
    cluster: str
    account: str
    partition: str
    gpu_type: str
    controller: WorkerSlot
    workers: tuple[WorkerSlot, ...]
    partitions: tuple[Partition, ...]  # the default one first
    types: tuple[tuple[str, str], ...] = ()  # part of a GPU's model -> what jobs call it
    settings: tuple[tuple[str, str], ...] = ()  # further lines of slurm.conf
    user: str = UNIX_USER

    @property
    def allocations(self) -> tuple[str, ...]:
        """Return every allocation once, the controller's first."""
        return tuple(dict.fromkeys([self.controller.allocation_id, *(w.allocation_id for w in self.workers)]))

    def type_of(self, slot: WorkerSlot, device: str) -> str:
        """Return the GPU type that jobs request for a device: the type of the first rule that matches the model
        reported by the host, otherwise the default type."""
        model = dict(slot.models).get(device, "").lower()
        return next((kind for part, kind in self.types if part.lower() in model), self.gpu_type)

    def gpus_by_type(self, devices: Mapping[str, Iterable[str]]) -> dict[str, int]:
        """Return the number of GPUs of each type. `devices` has the GPU device files of each allocation."""
        kinds = Counter(self.type_of(w, one) for w in self.workers for one in devices.get(w.allocation_id, ()))
        return dict(sorted(kinds.items()))

    def workers_on(self, allocation_id: str) -> tuple[WorkerSlot, ...]:
        return tuple(w for w in self.workers if w.allocation_id == allocation_id)


def make(
    instance_id: str,
    name: str,
    inputs: dict[str, Any],
    members: Iterable[MemberLike],
    project_id: str,
    project_slug: str | None = None,
) -> Plan:
    validate.known_keys(inputs, INPUTS)
    slots = _slots(members)
    types = _types(inputs.get("gpu_types", []))
    gpu_type = validate.word("gpu_type", inputs.get("gpu_type", "gpu"))
    return Plan(
        instance_id=validate.word("id", instance_id),
        cluster=validate.word("cluster_name", inputs.get("cluster_name") or _cluster_from(name, instance_id)),
        account=validate.word("account", account_for(project_id, project_slug)),
        partition=validate.word("partition", inputs.get("partition", "main")),
        gpu_type=gpu_type,
        controller=slots["controller"][0],
        workers=tuple(slots["worker"]),
        partitions=_partitions(inputs, {gpu_type, *(kind for _, kind in types)}),
        types=types,
        settings=settings.read(inputs.get("slurm_conf", {})),
    )


def _partitions(inputs: dict[str, Any], gpu_types: set[str]) -> tuple[Partition, ...]:
    """Read the partitions from the inputs: `partition` names the default partition, `partitions` configures it or adds
    others."""
    default = validate.word("partition", inputs.get("partition", "main"))
    rows = validate.rows("partitions", inputs.get("partitions", []), PARTITION, 16)
    made = [_partition(inputs, row, gpu_types) for row in rows]
    names = [one.name for one in made]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadWord("partitions", twice, "the name of one partition only")
    if default not in names:
        made.insert(0, _partition(inputs, {"name": default}, gpu_types))
    made.sort(key=lambda one: one.name != default)
    if made[0].gpu_type:
        raise BadWord("gpu_type", made[0].gpu_type, "left out for the default partition, which has all workers")
    return tuple(made)


def _partition(inputs: dict[str, Any], row: dict[str, Any], gpu_types: set[str]) -> Partition:
    name = validate.word("partition", row.get("name"))
    minutes = _minutes("default_time_limit_minutes", row, inputs) or 60
    most = _minutes(MAX, row, inputs)
    if most is not None and minutes > most:
        if any("default_time_limit_minutes" in given for given in (row, inputs if most != row.get(MAX) else {})):
            raise BadWord("default_time_limit_minutes", minutes, f"at most {most}, the maximum of partition {name}")
        minutes = most  # a maximum alone is enough to give
    kind = row.get("gpu_type")
    if kind is not None and validate.word("gpu_type", kind) not in gpu_types:
        raise BadWord("gpu_type", kind, f"what some GPUs are called here: {', '.join(sorted(gpu_types))}")
    tier = row.get("priority_tier")
    return Partition(
        name, minutes, most, kind, None if tier is None else validate.whole("priority_tier", tier, 1, 65000)
    )


def _minutes(what: str, row: dict[str, Any], inputs: dict[str, Any]) -> int | None:
    value = row.get(what, inputs.get(what))
    return None if value is None else validate.whole(what, value, 1, MOST_MINUTES)


def _types(value: object) -> tuple[tuple[str, str], ...]:
    rows = validate.rows("gpu_types", value, GPU_RULE, 16)
    return tuple((validate.text("model", r.get("model"), 80), validate.word("gpu_type", r.get("type"))) for r in rows)


def account_for(project_id: str, project_slug: str | None) -> str:
    """Return the Slurm account of a project: its slug if Slurm accepts it, otherwise a name made from the project
    id."""
    fallback = "prj-" + validate.word("id", project_id).rsplit("_", 1)[-1][-10:]
    made = validate.slug(project_slug or "", fallback)
    return made if made not in validate.RESERVED["account"] else fallback


def _cluster_from(name: str, instance_id: str) -> str:
    return validate.slug(name, "slurm-" + validate.word("id", instance_id).rsplit("_", 1)[-1][-8:])


def _slots(members: Iterable[MemberLike]) -> dict[str, list[WorkerSlot]]:
    slots: dict[str, list[WorkerSlot]] = {"controller": [], "worker": []}
    for member in sorted(members, key=lambda m: (m.component_key, m.ordinal)):
        if member.component_key in slots:
            slots[member.component_key].append(_slot(member))
    if len(slots["controller"]) != 1:
        raise BadPlan(f"A cluster has exactly one controller; this instance has {len(slots['controller'])}.")
    if not slots["worker"]:
        raise BadPlan("A cluster needs at least one worker; this instance has none.")
    return slots


def _slot(member: MemberLike) -> WorkerSlot:
    if not member.allocation_id or not member.address:
        raise BadPlan(f"Member {member.id} has no machine yet.")
    return WorkerSlot(
        member_id=validate.word("id", member.id),
        allocation_id=validate.word("id", member.allocation_id),
        ordinal=validate.whole("ordinal", member.ordinal, 0, 9999),
        host=str(member.node_name or member.address),  # only ever shown to people
        address=validate.address(member.address),
        models=_models(member.facts),
    )


def _models(facts: Any) -> tuple[tuple[str, str], ...]:
    gpus = (facts or {}).get("gpus") or []
    return tuple((str(gpu.get("path", "")), str(gpu.get("model", ""))) for gpu in gpus if isinstance(gpu, dict))
