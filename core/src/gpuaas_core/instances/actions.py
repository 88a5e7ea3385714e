"""What can be done now, and why not: the services ask here before they act, and the views before they show.

A check answers with the problem that would be raised, or with nothing. It looks, in this order, at what the app's
manifest offers, at the state, and at operations under way. Permission is asked by the edge.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from ..kit.lifecycle import WrongMoment
from ..kit.problems import Problem
from ..operations.errors import NotRetryable, OperationLive
from ..operations.rows import OperationRow
from ..operations.states import RETRYABLE
from .errors import ActionNotSupported, MachineShared, MemberNeeded, NothingToRollBack
from .placement import rules_of
from .reads import Staying
from .states import DECOMMISSION, INSTANCE, KINDS, MEMBER, OF_INSTANCE, OF_MEMBER, REMOVE, REPLACE
from .work import Work

Manifest = dict[str, Any]
Live = Sequence[Work]


def declared(manifest: Manifest, key: str, target: str, topology: str) -> Problem | None:
    """An app says which actions it has, in which topologies, and why not in the others."""
    for action in manifest.get("actions", ()):
        if (action["key"], action["target"]) == (key, target):
            if topology in action.get("valid_in", [topology]):
                return None
            reason = action.get("reason_when_not") or f"The app does not offer {key!r} in the topology {topology!r}."
            return ActionNotSupported(reason)
    return ActionNotSupported(f"The app {manifest['app_slug']} {manifest['version']} does not offer {key!r}.")


def timing(manifest: Manifest, kind: str) -> tuple[int, int]:
    """Seconds for the whole operation, and for one of its phases: what the app says, otherwise our own guess."""
    known, said = KINDS[kind], manifest.get("operations", {}).get(kind, {})
    return said.get("deadline_s", known.deadline_s), said.get("expected_phase_s", known.phase_s)


def of_instance(kind: str, instance: Row[Any], manifest: Manifest, live: Live, last: Work | None) -> Problem | None:
    """`last`: the instance's newest operation."""
    known = KINDS[kind]
    unsupported = declared(manifest, known.key, OF_INSTANCE, instance.topology) if known.key else None
    if unsupported:
        return unsupported
    if not INSTANCE.allows(instance.state, known.ask or ""):
        return _wrong(INSTANCE.noun, instance.state, known.key or kind)
    if kind == "rollback" and not (instance.previous_version or half_upgraded(instance, last)):
        return NothingToRollBack("The instance was never upgraded, so there is no version before.")
    return None if kind == DECOMMISSION else _blocked(live)


def half_upgraded(instance: Row[Any], last: Work | None) -> bool:
    """Its upgrade did not end well: the version is the old one, but nobody can say what is on the machines."""
    return instance.state == "failed" and last is not None and last.kind == "upgrade" and last.status in RETRYABLE


def of_member(
    kind: str,
    member: Row[Any],
    instance: Row[Any],
    manifest: Manifest,
    live: Live,
    staying: Staying,
    *,
    gone: bool = False,
) -> Problem | None:
    """`staying`: how many of each component are not on their way out. `gone`: its machine is, and it is fenced."""
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
    """A component that says which actions are valid for it has no others; one that does not say has all."""
    for one in manifest["components"]:
        if one["key"] == component and key not in one.get("actions", [key]):
            return ActionNotSupported(f"The app does not offer {key!r} for the component {component!r}.")
    return None


def retry_of_member(member: Row[Any], instance: Row[Any], live: Live) -> Problem | None:
    """`member`: with `last_*`, its newest operation."""
    if member.last_target_kind != OF_MEMBER:
        return NotRetryable("The member has no operation of its own that could be retried.")
    if member.last_status not in RETRYABLE:
        return NotRetryable(f"Its newest operation is {member.last_status}.")
    if not MEMBER.allows(member.state, again(member.last_kind, member.state) or ""):
        return NotRetryable(f"The member is {member.state}.")
    gone = bool((member.last_params or {}).get("host_is_gone"))
    return _not_running(instance, gone=gone) or _blocked(live, None if gone else member.id)


def _shares(member: Row[Any], staying: Staying) -> Problem | None:
    """Who leaves a machine must prove that nothing is left there: not possible where another member stays."""
    if staying.machines[member.allocation_id] < 2:
        return None
    return MachineShared(f"Another member of the instance is on {member.node_name!r}, too.")


def _needed(member: Row[Any], instance: Row[Any], manifest: Manifest, staying: Staying) -> Problem | None:
    component = member.component_key
    least = rules_of(manifest, instance.topology)[component]["min"]
    if staying.components[component] - 1 >= least:
        return None
    return MemberNeeded(f"The topology {instance.topology!r} needs at least {least} {component!r}.")


def adding(component: str, instance: Row[Any], manifest: Manifest, live: Live) -> Problem | None:
    return (
        declared(manifest, f"add_{component}", OF_INSTANCE, instance.topology)
        or _not_running(instance)
        or _blocked([one for one in live if one.member_id is None or fences(one)])
    )


def tombstone(member: Row[Any], instance: Row[Any], live: Live) -> Problem | None:
    if not MEMBER.allows(member.state, "tombstone"):
        return _wrong(MEMBER.noun, member.state, "tombstone")
    if instance.state == "deleting":
        return _wrong(INSTANCE.noun, instance.state, "tombstone")
    return _blocked(live, member.id)


def retry(operation: Work, instance: Row[Any], member: Row[Any] | None, live: Live) -> Problem | None:
    """The newest operation of its target, ended without success, and the target where it can begin again."""
    target = instance if member is None else member
    if target.last_operation_id != operation.id:
        return NotRetryable(f"A newer operation exists: {target.last_operation_id}.")
    life = INSTANCE if member is None else MEMBER
    if not life.allows(target.state, again(operation.kind, target.state) or ""):
        return NotRetryable(f"The {life.noun} is {target.state}.")
    if member is None:
        return _blocked(live)
    gone = fences(operation)
    return _not_running(instance, gone=gone) or _blocked(live, None if gone else member.id)


def again(kind: str, state: str) -> str | None:
    """The move of the target for another try: from where it failed, or from where it was canceled."""
    known = KINDS[kind]
    return known.again if state in ("failed", "deleting") else known.ask


def abandon(operation: Work, instance: Row[Any], member: Row[Any] | None) -> Problem | None:
    """Of an operation that has ended: only where it left its target in the middle of going away."""
    stands = {
        DECOMMISSION: instance.state == "deleting" and instance.last_operation_id == operation.id,
        REMOVE: member is not None and member.state == "failed" and member.last_operation_id == operation.id,
    }
    return None if stands.get(operation.kind) else _wrong("operation", operation.status, "abandon")


def fences(operation: OperationRow) -> bool:
    """It takes out a member whose machine is gone: the app then works on all the others, too."""
    return bool((operation.params or {}).get("host_is_gone"))


def _not_running(instance: Row[Any], *, gone: bool = False) -> Problem | None:
    """A machine that is gone may be why the instance failed; then it has to go before anything else can."""
    deployed_once = instance.observed_generation > 0
    if instance.state == "running" or (gone and instance.state == "failed" and deployed_once):
        return None
    return WrongMoment(f"The instance is {instance.state}; its members can be changed while it is running.")


def _blocked(live: Live, member_id: str | None = None) -> Problem | None:
    """An operation of the instance excludes all others, and so does one that fences; one of a member, those of the
    same member."""
    for one in live:
        whole = member_id is None or one.member_id is None or fences(one)
        if whole or member_id in (one.member_id, one.old_member_id):
            return OperationLive(f"The {one.kind} {one.id} is under way.", extra={"operation_id": one.id})
    return None


def _wrong(noun: str, state: str, action: str) -> Problem:
    return WrongMoment(f"The {noun} is {state}: {action!r} is not possible now.")
