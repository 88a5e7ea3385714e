"""The lifecycles of a node and of an allocation.

An administrator's decision about a node (its standing: ready, cordoned or draining) is kept while the node is silent: a
node that was cordoned, became silent and reports again is cordoned. A decision about a silent node changes only the
standing, not the state.

A node whose identity was copied is suspended: the platform cannot tell the two machines apart, so neither is accepted
until an administrator readmits the node with a new identity or retires it.
"""

from ..kit.lifecycle import Lifecycle

STANDINGS = ("ready", "cordoned", "draining")
SILENT = ("unknown", "lost")
UNHEARD = (*SILENT, "suspended")  # a pending release will not be reported
DECISIONS = ("cordon", "uncordon", "drain", "retire", "readmit")

_BACK = {f"back_to_{standing}": standing for standing in STANDINGS}


def _silent(state: str) -> dict[str, str]:
    return {action: state for action in ("cordon", "uncordon", "drain")} | {"retire": "retired"} | _BACK


def _living(state: str) -> dict[str, str]:
    """Return the transitions that every state except `retired` has: readmit, rejoin, replace and suspend."""
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
