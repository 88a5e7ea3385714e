"""The lifecycle of a break-glass."""

from ..kit.lifecycle import Lifecycle

AWAITING, ACTIVE, CLOSED, EXPIRED = "awaiting_approval", "active", "closed", "expired"

BREAK_GLASS = Lifecycle(
    "break-glass",
    {
        AWAITING: {"approve": ACTIVE, "close": CLOSED, "expire": EXPIRED},
        ACTIVE: {"close": CLOSED, "expire": EXPIRED},
        CLOSED: {},
        EXPIRED: {},
    },
)
