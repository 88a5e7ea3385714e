"""The lifecycle of an access credential."""

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
