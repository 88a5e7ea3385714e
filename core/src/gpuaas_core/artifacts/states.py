"""The lifecycles of artifact sources, artifacts and deliveries."""

from ..kit.lifecycle import Lifecycle

ENABLED, DISABLED, REMOVED = "enabled", "disabled", "removed"
SOURCE = Lifecycle(
    "artifact source",
    {
        ENABLED: {"disable": DISABLED, "remove": REMOVED},
        DISABLED: {"enable": ENABLED, "remove": REMOVED},
        REMOVED: {},
    },
)

REGISTERED, WITHDRAWN = "registered", "withdrawn"
ARTIFACT = Lifecycle("artifact", {REGISTERED: {"withdraw": WITHDRAWN}, WITHDRAWN: {}})

OFFERED, RECEIVED, ENDED = "offered", "received", "ended"
DELIVERY = Lifecycle("delivery", {OFFERED: {"receive": RECEIVED, "end": ENDED}, RECEIVED: {}, ENDED: {}})
