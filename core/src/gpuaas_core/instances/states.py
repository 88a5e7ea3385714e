"""The lifecycles of an instance and a member, and the transitions that each kind of operation causes."""

from dataclasses import dataclass

from ..kit.lifecycle import Lifecycle
from ..operations.targets import OperationKind


def _on_the_way(to: str, at: str, *undone: str) -> dict[str, str]:
    """Return the transitions of a state during an operation: the operation is claimed, succeeds, fails, gives way to a
    decommission, or is undone, which restores one of the states in `undone`."""
    moves = {"claim": at, "succeed": to, "fail": "failed", "delete": "deleting"}
    return moves | {f"back_to_{state}": state for state in undone}


INSTANCE = Lifecycle(
    "instance",
    {
        "requested": {"claim": "provisioning", "cancel": "failed", "fail": "failed", "delete": "deleting"},
        "provisioning": {
            "claim": "provisioning",
            "succeed": "running",
            "cancel": "failed",
            "fail": "failed",
            "delete": "deleting",
        },
        "running": {
            "stop": "stopping",
            "restart": "starting",
            "reconfigure": "updating",
            "rotate_keys": "updating",
            "upgrade": "upgrading",
            "rollback": "upgrading",
            "delete": "deleting",
        },
        "stopping": _on_the_way("stopped", "stopping", "running", "failed"),
        "stopped": {"start": "starting", "delete": "deleting"},
        "starting": _on_the_way("running", "starting", "running", "stopped", "failed"),
        "updating": _on_the_way("running", "updating", "running", "failed"),
        "upgrading": _on_the_way("running", "upgrading", "running", "failed"),
        "failed": {
            "retry": "requested",
            "retry_stop": "stopping",
            "retry_start": "starting",
            "retry_restart": "starting",
            "retry_reconfigure": "updating",
            "retry_rotate_keys": "updating",
            "retry_upgrade": "upgrading",
            "retry_rollback": "upgrading",
            "reconfigure": "updating",  # other inputs may be what it needs
            "rollback": "upgrading",
            "delete": "deleting",
        },
        "deleting": {
            "claim": "deleting",
            "succeed": "deleted",
            "fail": "deleting",
            "cancel": "deleting",
            "retry": "deleting",
            "abandon": "deleted",
        },
        "deleted": {},
    },
)

MEMBER = Lifecycle(
    "member",
    {
        "pending": {
            "provision": "provisioning",
            "ready": "ready",
            "fail": "failed",
            "remove": "removing",
            "cancel": "removed",
            "back_to_failed": "failed",
        },
        "provisioning": {
            "provision": "provisioning",
            "ready": "ready",
            "fail": "failed",
            "remove": "removing",
            "cancel": "removed",
            "back_to_ready": "ready",
            "back_to_drained": "drained",
            "back_to_failed": "failed",
        },
        "ready": {
            "ready": "ready",
            "drain": "draining",
            "restart": "provisioning",
            "fail": "failed",
            "remove": "removing",
            "take_out": "removing",
            "provision": "provisioning",
        },
        "draining": {
            "drain": "draining",
            "drained": "drained",
            "ready": "ready",
            "fail": "failed",
            "remove": "removing",
            "back_to_ready": "ready",
            "back_to_failed": "failed",
        },
        "drained": {
            "drained": "drained",
            "undrain": "provisioning",
            "ready": "ready",
            "fail": "failed",
            "remove": "removing",
            "take_out": "removing",
        },
        "removing": {
            "remove": "removing",
            "removed": "removed",
            "abandon": "removed",
            "fail": "failed",
            "back_to_ready": "ready",
            "back_to_drained": "drained",
            "back_to_failed": "failed",
        },
        "failed": {
            "fail": "failed",
            "retry": "pending",
            "retry_drain_member": "draining",
            "retry_undrain_member": "provisioning",
            "retry_restart_member": "provisioning",
            "remove": "removing",
            "take_out": "removing",
            "removed": "removed",
            "tombstone": "removed",
            "abandon": "removed",
        },
        "removed": {},
    },
)

# What a controller reports of a member, and the action it stands for.
REPORTED = {
    "provisioning": "provision",
    "ready": "ready",
    "draining": "drain",
    "drained": "drained",
    "removing": "remove",
    "removed": "removed",
    "failed": "fail",
}

DEPLOY, DECOMMISSION = "deploy", "decommission"
ADD, REMOVE, REPLACE = "add_member", "remove_member", "replace_member"
OF_INSTANCE, OF_MEMBER = "instance", "member"


@dataclass(frozen=True)
class Kind(OperationKind):
    """A kind of operation, with the transitions of its target when the operation is requested, claimed, done, undone
    and retried."""

    target: str
    key: str  # what an app's manifest calls it; empty: every app does it
    ask: str | None
    begin: str | None
    done: str
    again: str
    sentence: str  # how the target is when it is done
    undo: str | None = None  # instead of going back to where it came from


KINDS: dict[str, Kind] = {
    DEPLOY: Kind(
        OF_INSTANCE, "", None, "claim", "succeed", "retry", "Running", undo="cancel", deadline_s=7200, undoable=False
    ),
    DECOMMISSION: Kind(
        OF_INSTANCE,
        "",
        "delete",
        "claim",
        "succeed",
        "retry",
        "Torn down, with evidence",
        undo="cancel",
        undoable=False,
    ),
    "stop": Kind(OF_INSTANCE, "stop", "stop", "claim", "succeed", "retry_stop", "Stopped"),
    "start": Kind(OF_INSTANCE, "start", "start", "claim", "succeed", "retry_start", "Running"),
    "restart": Kind(OF_INSTANCE, "restart", "restart", "claim", "succeed", "retry_restart", "Running"),
    "reconfigure": Kind(OF_INSTANCE, "update", "reconfigure", "claim", "succeed", "retry_reconfigure", "Running"),
    "rotate_keys": Kind(OF_INSTANCE, "rotate_keys", "rotate_keys", "claim", "succeed", "retry_rotate_keys", "Running"),
    "upgrade": Kind(
        OF_INSTANCE,
        "upgrade",
        "upgrade",
        "claim",
        "succeed",
        "retry_upgrade",
        "Running",
        deadline_s=7200,
        undoable=True,
    ),
    "rollback": Kind(
        OF_INSTANCE,
        "rollback",
        "rollback",
        "claim",
        "succeed",
        "retry_rollback",
        "Running",
        deadline_s=7200,
        undoable=True,
    ),
    ADD: Kind(OF_MEMBER, "add", None, "provision", "ready", "retry", "Ready", undo="cancel"),
    "drain_member": Kind(OF_MEMBER, "drain", "drain", None, "drained", "retry_drain_member", "Drained"),
    "undrain_member": Kind(OF_MEMBER, "undrain", "undrain", None, "ready", "retry_undrain_member", "Ready"),
    "restart_member": Kind(OF_MEMBER, "restart", "restart", None, "ready", "retry_restart_member", "Ready"),
    REMOVE: Kind(OF_MEMBER, "remove", "take_out", None, "removed", "take_out", "Removed, with evidence"),
    REPLACE: Kind(OF_MEMBER, "replace", None, "provision", "ready", "retry", "Ready", undo="cancel"),
}
NEW_VERSION = ("upgrade", "rollback")
APPLIES_SPEC = (DEPLOY, "reconfigure", *NEW_VERSION)  # afterwards the newest generation is what runs
assert all(kind.target in (OF_INSTANCE, OF_MEMBER) for kind in KINDS.values())


def undone(kind: str, from_state: str | None) -> str:
    """Return the target's transition after an operation that did nothing or was undone completely.

    A canceled retry leaves the member failed, as the first attempt did, even if the kind would otherwise remove it.
    """
    known = KINDS[kind]
    second_try = known.target == OF_MEMBER and from_state == "failed"
    return known.undo if known.undo and not second_try else f"back_to_{from_state}"
