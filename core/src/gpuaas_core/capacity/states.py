"""The lives of a node and of an allocation."""

from ..kit.lifecycle import Lifecycle

NODE = Lifecycle(
    "node",
    {
        "enrolling": {"report": "ready", "lose": "unknown"},
        "ready": {"cordon": "cordoned", "lose": "unknown", "report": "ready"},
        "cordoned": {"uncordon": "ready", "drain": "draining", "lose": "unknown", "report": "cordoned"},
        "draining": {"retire": "retired", "report": "draining"},
        "unknown": {"report": "ready", "retire": "retired"},
        "retired": {},
    },
)

ALLOCATION = Lifecycle(
    "allocation",
    {
        "requested": {"realize": "active", "release": "releasing"},
        "active": {"release": "releasing"},
        "releasing": {"finish": "released"},
        "released": {},
    },
)
