"""The lifecycle of an app version. The state decides whether the version can be deployed; the manifest never
changes."""

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

DEPLOYABLE = ("published", "deprecated")  # in this order of preference, when the request names no version
