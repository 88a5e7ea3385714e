"""The lifecycles of an access credential and of an SSH authority."""

from ..kit.lifecycle import Lifecycle

ACTIVE, ROTATING, REVOKED = "active", "rotating", "revoked"
BIND, REDEEM, ROTATE, COMPLETE, REVOKE = "bind", "redeem", "rotate", "complete_rotation", "revoke"

CREDENTIAL = Lifecycle(
    "credential",
    {
        ACTIVE: {BIND: ACTIVE, REDEEM: ACTIVE, ROTATE: ROTATING, REVOKE: REVOKED},
        ROTATING: {BIND: ROTATING, REDEEM: ROTATING, COMPLETE: ACTIVE, REVOKE: REVOKED},
        REVOKED: {},
    },
)

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
