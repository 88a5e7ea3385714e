"""The lifecycle of an operation. The lifecycle of its target is defined in the target's room."""

from ..kit.lifecycle import Lifecycle

OPERATION = Lifecycle(
    "operation",
    {
        "queued": {
            "claim": "running",
            "cancel": "canceled",
            "supersede": "superseded",
            "lose": "needs_attention",
            "abandon": "needs_attention",
        },
        "running": {
            "claim": "running",
            "release": "queued",
            "succeed": "succeeded",
            "fail": "failed",
            "cancel": "canceled",
            "supersede": "superseded",
            "lose": "needs_attention",
            "abandon": "needs_attention",
        },
        "succeeded": {},
        "failed": {},
        "canceled": {},
        "superseded": {},
        "needs_attention": {},
    },
)

RETRYABLE = ("failed", "needs_attention", "canceled")
LIVE = tuple(OPERATION.live_states)

# Why an operation does not move, and the sentence people read.
STUCK = {
    "heartbeats_missed": "Its controller has missed three heartbeats.",
    "deadline_passed": "It should have ended by now.",
    "no_progress": "It has not got further for twice the time a phase should take.",
    "unclaimed": "No controller has claimed it.",
}
