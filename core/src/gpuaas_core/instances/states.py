"""The lives of an instance, a member and an operation."""

from ..kit.lifecycle import Lifecycle

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
            "upgrade": "upgrading",
            "fail": "failed",
            "delete": "deleting",
        },
        "stopping": {"claim": "stopping", "succeed": "stopped", "fail": "failed", "delete": "deleting"},
        "stopped": {"start": "starting", "delete": "deleting"},
        "starting": {"claim": "starting", "succeed": "running", "fail": "failed", "delete": "deleting"},
        "upgrading": {"claim": "upgrading", "succeed": "running", "fail": "failed", "delete": "deleting"},
        "failed": {"retry": "requested", "delete": "deleting"},
        "deleting": {
            "claim": "deleting",
            "succeed": "deleted",
            "fail": "deleting",
            "cancel": "deleting",
            "retry": "deleting",
        },
        "deleted": {},
    },
)

MEMBER = Lifecycle(
    "member",
    {
        "pending": {"provision": "provisioning", "ready": "ready", "fail": "failed", "remove": "removing"},
        "provisioning": {"provision": "provisioning", "ready": "ready", "fail": "failed", "remove": "removing"},
        "ready": {
            "ready": "ready",
            "drain": "draining",
            "fail": "failed",
            "remove": "removing",
            "provision": "provisioning",
        },
        "draining": {"drained": "drained", "ready": "ready", "fail": "failed", "remove": "removing"},
        "drained": {"ready": "ready", "fail": "failed", "remove": "removing"},
        "removing": {"remove": "removing", "removed": "removed", "fail": "failed"},
        "failed": {"retry": "pending", "remove": "removing", "removed": "removed"},
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

OPERATION = Lifecycle(
    "operation",
    {
        "queued": {"claim": "running", "cancel": "canceled", "supersede": "superseded", "lose": "needs_attention"},
        "running": {
            "claim": "running",
            "release": "queued",
            "succeed": "succeeded",
            "fail": "failed",
            "cancel": "canceled",
            "supersede": "superseded",
            "lose": "needs_attention",
        },
        "succeeded": {},
        "failed": {},
        "canceled": {},
        "superseded": {},
        "needs_attention": {},
    },
)

DEPLOY, DECOMMISSION = "deploy", "decommission"
RETRYABLE = ("failed", "needs_attention", "canceled")
LIVE = tuple(OPERATION.live_states)
