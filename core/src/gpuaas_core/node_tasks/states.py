"""The lifecycle of a task.

A task given to a node is `leased`; it is `running` once the node renewed the lease, and only then does the node start.
So a lease that expires before that is given out again for any kind; later only if the kind is idempotent.
"""

from ..kit.lifecycle import Lifecycle

QUEUED, LEASED, RUNNING = "queued", "leased", "running"
LIVE = (QUEUED, LEASED, RUNNING)
WAITING = (QUEUED, LEASED)  # nothing has happened on the node yet

TASK = Lifecycle(
    "task",
    {
        QUEUED: {"lease": LEASED, "cancel": "canceled", "expire": "expired", "give_up": "failed"},
        LEASED: {"renew": RUNNING, "lapse": QUEUED, "refuse": "refused", "cancel": "canceled", "expire": "expired"},
        RUNNING: {
            "renew": RUNNING,
            "lapse": QUEUED,
            "succeed": "succeeded",
            "fail": "failed",
            "refuse": "refused",
            "interrupt": "interrupted",
            "expire": "expired",
        },
        "succeeded": {},
        "failed": {},
        "refused": {},
        "interrupted": {},
        "expired": {},
        "canceled": {},
    },
)

# A node's reported result to the lifecycle action.
REPORTED = {"succeeded": "succeed", "failed": "fail", "refused": "refuse", "interrupted": "interrupt"}
