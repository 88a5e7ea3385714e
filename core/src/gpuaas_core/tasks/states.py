"""The life of a task.

Handed out it is `leased`; it is `running` once the machine renewed the lease, and only then does the machine begin. So
a lease that lapses before that is handed out again, whatever the kind; later only if the kind is idempotent.
"""

from ..kit.lifecycle import Lifecycle

QUEUED, LEASED, RUNNING = "queued", "leased", "running"
LIVE = (QUEUED, LEASED, RUNNING)
WAITING = (QUEUED, LEASED)  # nothing has happened on the machine yet

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

# What a machine reports, and the move it is.
REPORTED = {"succeeded": "succeed", "failed": "fail", "refused": "refuse", "interrupted": "interrupt"}
