"""The lifecycle of a task.

A task that was given to a node is `leased`. The node renews the lease before it starts the task; from then on the task
is `running`. A `leased` task was not started, so it can be leased again whatever its kind. A `running` task is leased
again only after its lease has expired, and only if its kind is idempotent.
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
