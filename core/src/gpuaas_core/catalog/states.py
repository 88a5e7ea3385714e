"""The life of an app version. Its manifest never changes; only what may be done with it does."""

from ..kit.lifecycle import Lifecycle

VERSION = Lifecycle(
    "app version",
    {
        "draft": {"publish": "published", "withdraw": "withdrawn"},
        "published": {"publish": "published", "deprecate": "deprecated", "withdraw": "withdrawn"},
        "deprecated": {"publish": "published", "withdraw": "withdrawn"},
        "withdrawn": {},
    },
)

DEPLOYABLE = ("published", "deprecated")  # in this order, when nobody names a version
