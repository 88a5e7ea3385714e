"""The lives of a node and of an allocation.

What people decided about a node (its standing: ready, cordoned or draining) outlives its silence: a machine that was
cordoned, fell silent and reports again is cordoned. While it is silent people may still decide; its state stays.
A machine whose identity was copied is suspended: nobody can say which of the two speaks, so neither is heard until
people give it a new identity (readmit) or retire it.
"""

from ..kit.lifecycle import Lifecycle

STANDINGS = ("ready", "cordoned", "draining")
SILENT = ("unknown", "lost")
UNHEARD = (*SILENT, "suspended")  # what it was about to give back, it will not say any more
DECISIONS = ("cordon", "uncordon", "drain", "retire", "readmit")

_BACK = {f"back_to_{standing}": standing for standing in STANDINGS}


def _silent(state: str) -> dict[str, str]:
    return {action: state for action in ("cordon", "uncordon", "drain")} | {"retire": "retired"} | _BACK


def _living(state: str) -> dict[str, str]:
    """People invite it back; it comes with a new identity, or as another node; or there are two of it."""
    return {"readmit": state, "rejoin": "enrolling", "replace": "retired", "suspend": "suspended"}


NODE = Lifecycle(
    "node",
    {
        "enrolling": _BACK | {"retire": "retired"} | _living("enrolling"),
        "ready": {"report": "ready", "cordon": "cordoned", "drain": "draining", "lose": "unknown"} | _living("ready"),
        "cordoned": {"report": "cordoned", "uncordon": "ready", "drain": "draining", "lose": "unknown"}
        | _living("cordoned"),
        "draining": {"report": "draining", "uncordon": "ready", "retire": "retired", "lose": "unknown"}
        | _living("draining"),
        "unknown": _silent("unknown") | {"give_up": "lost"} | _living("unknown"),
        "lost": _silent("lost") | _living("lost"),
        "suspended": {"retire": "retired"} | _living("suspended"),
        "retired": {},
    },
    asked=DECISIONS,
)

ALLOCATION = Lifecycle(
    "allocation",
    {
        "requested": {"realize": "active", "release": "releasing"},
        "active": {"release": "releasing"},
        "releasing": {"finish": "released"},
        "released": {},
    },
    asked=("release",),
)
