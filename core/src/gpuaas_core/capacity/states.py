"""The lives of a node and of an allocation.

What people decided about a node (its standing: ready, cordoned or draining) outlives its silence: a machine that was
cordoned, fell silent and reports again is cordoned. While it is silent people may still decide; its state stays.
"""

from ..kit.lifecycle import Lifecycle

STANDINGS = ("ready", "cordoned", "draining")
SILENT = ("unknown", "lost")
DECISIONS = ("cordon", "uncordon", "drain", "retire")


def _silent(state: str) -> dict[str, str]:
    decisions = {action: state for action in ("cordon", "uncordon", "drain")} | {"retire": "retired"}
    return decisions | {f"back_to_{standing}": standing for standing in STANDINGS}


NODE = Lifecycle(
    "node",
    {
        "enrolling": {"report": "ready", "retire": "retired"},
        "ready": {"report": "ready", "cordon": "cordoned", "drain": "draining", "lose": "unknown"},
        "cordoned": {"report": "cordoned", "uncordon": "ready", "drain": "draining", "lose": "unknown"},
        "draining": {"report": "draining", "uncordon": "ready", "retire": "retired", "lose": "unknown"},
        "unknown": _silent("unknown") | {"give_up": "lost"},
        "lost": _silent("lost"),
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
