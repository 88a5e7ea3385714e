"""The lifecycle of an SSH authority."""

from ..kit.lifecycle import Lifecycle

ACTIVE = "active"
NEXT, RETIRING, RETIRED = "next", "retiring", "retired"
ACTIVATE, REPLACE, RETIRE = "activate", "replace", "retire"

# `next` is trusted but does not sign yet; `retiring` no longer signs but is still trusted.
AUTHORITY = Lifecycle(
    "SSH authority",
    {
        NEXT: {ACTIVATE: ACTIVE},
        ACTIVE: {REPLACE: RETIRING},
        RETIRING: {RETIRE: RETIRED},
        RETIRED: {},
    },
)
