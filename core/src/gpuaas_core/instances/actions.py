"""Checks whether an action on an instance or member is possible now. Services call the checks before they act; views
call them to show the available actions.

A check returns None if the action is possible, otherwise the problem that would be raised. It considers, in this order,
the actions in the app's manifest, the state, and operations under way. Permissions are checked by the HTTP layer.
"""

from collections.abc import Sequence
from typing import Protocol

from ..catalog.manifest_types import Manifest
from ..kit.lifecycle import WrongMoment
from ..kit.problems import Problem
from ..operations.errors import NotRetryable, OperationLive
from ..operations.rows import OperationRow
from ..operations.states import RETRYABLE
from .errors import ActionNotSupported, MachineShared, MemberNeeded, NothingToRollBack
from .placement import rules_of
from .reads import Staying
from .rows import Work, host_is_gone
from .states import DECOMMISSION, INSTANCE, KINDS, MEMBER, OF_INSTANCE, OF_MEMBER, REMOVE, REPLACE

Live = Sequence[Work]


class InstanceFacts(Protocol):
    """The fields of an instance that decide which actions are possible. `views` caches actions by these fields: a field
    that is added here must be added to the cache keys, too."""

    @property
    def state(self) -> str: ...
    @property
    def topology(self) -> str: ...
    @property
    def previous_version(self) -> str | None: ...
    @property
    def observed_generation(self) -> int: ...
    @property
    def last_operation_id(self) -> str | None: ...


class NewestOperation(Protocol):
    """The fields of an instance's newest operation that decide which actions are possible."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def status(self) -> str: ...


class MemberFacts(Protocol):
    """The fields of a member that decide which actions are possible."""

    @property
    def id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def component_key(self) -> str: ...
    @property
    def allocation_id(self) -> str: ...
    @property
    def node_name(self) -> str: ...
    @property
    def last_operation_id(self) -> str | None: ...
    @property
    def last_target_kind(self) -> str | None: ...
    @property
    def last_kind(self) -> str | None: ...
    @property
    def last_status(self) -> str | None: ...
    @property
    def host_is_gone(self) -> bool: ...


def declared(manifest: Manifest, key: str, target: str, topology: str) -> Problem | None:
    """Return None if the app's manifest declares the action for this topology, otherwise the problem."""
    for action in manifest.get("actions", ()):
        if (action["key"], action["target"]) == (key, target):
            if topology in action.get("valid_in", [topology]):
                return None
            reason = action.get("reason_when_not") or f"The app does not offer {key!r} in the topology {topology!r}."
            return ActionNotSupported(reason)
    return ActionNotSupported(f"The app {manifest['app_slug']} {manifest['version']} does not offer {key!r}.")


def timing(manifest: Manifest, kind: str) -> tuple[int, int]:
    """Return the deadline of an operation of this kind and the expected duration of one phase, in seconds. Values that
    the manifest does not have are defaults."""
    known, said = KINDS[kind], manifest.get("operations", {}).get(kind, {})
    return said.get("deadline_s", known.deadline_s), said.get("expected_phase_s", known.phase_s)


def of_instance(
    kind: str, instance: InstanceFacts, manifest: Manifest, live: Live, last: NewestOperation | None
) -> Problem | None:
    """Return None if an operation of this kind can start on the instance, otherwise the problem. `last`: the newest
    operation of the instance."""
    known = KINDS[kind]
    unsupported = declared(manifest, known.key, OF_INSTANCE, instance.topology) if known.key else None
    if unsupported:
        return unsupported
    if not INSTANCE.allows(instance.state, known.ask or ""):
        return _wrong(INSTANCE.noun, instance.state, known.key or kind)
    if kind == "rollback" and not (instance.previous_version or half_upgraded(instance, last)):
        return NothingToRollBack("The instance was never upgraded, so there is no version before.")
    return None if kind == DECOMMISSION else _blocked(live)


def half_upgraded(instance: InstanceFacts, last: NewestOperation | None) -> bool:
    """Whether the last operation was an upgrade that failed, so that the version on the machines may differ from the
    recorded (old) version."""
    return instance.state == "failed" and last is not None and last.kind == "upgrade" and last.status in RETRYABLE


def of_member(
    kind: str,
    member: MemberFacts,
    instance: InstanceFacts,
    manifest: Manifest,
    live: Live,
    staying: Staying,
    *,
    gone: bool = False,
) -> Problem | None:
    """Return None if an operation of this kind can start on the member, otherwise the problem.

    `staying`: counts of the members that are not being removed. `gone`: the member's machine is lost and fenced.
    """
    known = KINDS[kind]
    unsupported = declared(manifest, known.key, OF_MEMBER, instance.topology) or _of_component(
        manifest, known.key, member.component_key
    )
    if unsupported:
        return unsupported
    if known.ask and not MEMBER.allows(member.state, known.ask):
        return _wrong(MEMBER.noun, member.state, known.key)
    if not known.ask and member.state in ("removing", "removed"):
        return _wrong(MEMBER.noun, member.state, known.key)
    return (
        _not_running(instance, gone=gone)
        or _blocked(live, None if gone else member.id)
        or (_shares(member, staying) if kind in (REMOVE, REPLACE) else None)
        or (_needed(member, instance, manifest, staying) if kind == REMOVE else None)
    )


def _of_component(manifest: Manifest, key: str, component: str) -> Problem | None:
    """Return None if the component supports the action, otherwise the problem. A component that lists no actions
    supports all."""
    for one in manifest["components"]:
        if one["key"] == component and key not in one.get("actions", [key]):
            return ActionNotSupported(f"The app does not offer {key!r} for the component {component!r}.")
    return None


def retry_of_member(member: MemberFacts, instance: InstanceFacts, live: Live) -> Problem | None:
    """Return None if the member's newest operation (its `last_*` fields) can be retried, otherwise the problem."""
    if member.last_target_kind != OF_MEMBER:
        return NotRetryable("The member has no operation of its own that could be retried.")
    if member.last_status not in RETRYABLE:
        return NotRetryable(f"Its newest operation is {member.last_status}.")
    if not MEMBER.allows(member.state, again(member.last_kind or "", member.state) or ""):
        return NotRetryable(f"The member is {member.state}.")
    gone = member.host_is_gone
    return _not_running(instance, gone=gone) or _blocked(live, None if gone else member.id)


def _shares(member: MemberFacts, staying: Staying) -> Problem | None:
    """Return a problem if another member stays on the same machine, because the machine could not be proven clean then;
    otherwise None."""
    if staying.machines[member.allocation_id] < 2:
        return None
    return MachineShared(f"Another member of the instance is on {member.node_name!r}, too.")


def _needed(member: MemberFacts, instance: InstanceFacts, manifest: Manifest, staying: Staying) -> Problem | None:
    component = member.component_key
    least = rules_of(manifest, instance.topology)[component]["min"]
    if staying.components[component] - 1 >= least:
        return None
    return MemberNeeded(f"The topology {instance.topology!r} needs at least {least} {component!r}.")


def adding(component: str, instance: InstanceFacts, manifest: Manifest, live: Live) -> Problem | None:
    return (
        declared(manifest, f"add_{component}", OF_INSTANCE, instance.topology)
        or _not_running(instance)
        or _blocked([one for one in live if one.member_id is None or fences(one)])
    )


def tombstone(member: MemberFacts, instance: InstanceFacts, live: Live) -> Problem | None:
    if not MEMBER.allows(member.state, "tombstone"):
        return _wrong(MEMBER.noun, member.state, "tombstone")
    if instance.state == "deleting":
        return _wrong(INSTANCE.noun, instance.state, "tombstone")
    return _blocked(live, member.id)


def retry_of_instance(operation: NewestOperation, instance: InstanceFacts, live: Live) -> Problem | None:
    """Return None if this operation of the instance can be retried, otherwise the problem. It must be the newest
    operation, and the state of the instance must allow the retry."""
    if instance.last_operation_id != operation.id:
        return NotRetryable(f"A newer operation exists: {instance.last_operation_id}.")
    if not INSTANCE.allows(instance.state, again(operation.kind, instance.state) or ""):
        return NotRetryable(f"The {INSTANCE.noun} is {instance.state}.")
    return _blocked(live)


def retry(operation: Work, instance: InstanceFacts, member: MemberFacts | None, live: Live) -> Problem | None:
    """Return None if this operation of the instance or of one of its members can be retried, otherwise the problem."""
    if member is None:
        return retry_of_instance(operation, instance, live)
    if member.last_operation_id != operation.id:
        return NotRetryable(f"A newer operation exists: {member.last_operation_id}.")
    if not MEMBER.allows(member.state, again(operation.kind, member.state) or ""):
        return NotRetryable(f"The {MEMBER.noun} is {member.state}.")
    gone = fences(operation)
    return _not_running(instance, gone=gone) or _blocked(live, None if gone else member.id)


def again(kind: str, state: str) -> str | None:
    """Return the transition that a retry applies to its target in this state, or None if there is none. A target that
    failed needs another transition than one that a cancellation returned to its former state."""
    known = KINDS[kind]
    return known.again if state in ("failed", "deleting") else known.ask


def abandon(operation: Work, instance: InstanceFacts, member: MemberFacts | None) -> Problem | None:
    """Return None if this ended operation can be abandoned, otherwise the problem. Only a decommission or a removal
    that did not complete can be abandoned."""
    stands = {
        DECOMMISSION: instance.state == "deleting" and instance.last_operation_id == operation.id,
        REMOVE: member is not None and member.state == "failed" and member.last_operation_id == operation.id,
    }
    return None if stands.get(operation.kind) else _wrong("operation", operation.status, "abandon")


def fences(operation: OperationRow) -> bool:
    """Whether the operation removes or replaces a member whose machine is lost. The app then also works on all other
    members."""
    return host_is_gone(operation.params)


def _not_running(instance: InstanceFacts, *, gone: bool = False) -> Problem | None:
    """Return a problem unless the instance is running, as operations of members require. `gone`: the member's machine
    is lost, so a failed instance that was deployed before is accepted, too."""
    deployed_once = instance.observed_generation > 0
    if instance.state == "running" or (gone and instance.state == "failed" and deployed_once):
        return None
    return WrongMoment(f"The instance is {instance.state}; its members can be changed while it is running.")


def _blocked(live: Live, member_id: str | None = None) -> Problem | None:
    """Return a problem if an operation under way excludes a new one, otherwise None. `member_id` None: the new one
    needs the whole instance.

    An operation of the instance, or one that fences a machine, excludes all others. An operation of a member excludes
    others of the same member.
    """
    for one in live:
        whole = member_id is None or one.member_id is None or fences(one)
        if whole or member_id in (one.member_id, one.old_member_id):
            return OperationLive(f"The {one.kind} {one.id} is under way.", extra={"operation_id": one.id})
    return None


def _wrong(noun: str, state: str, action: str) -> Problem:
    return WrongMoment(f"The {noun} is {state}: {action!r} is not possible now.")
