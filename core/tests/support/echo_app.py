"""The app of the core's tests: two components, every action, and no scheduler in sight."""

from typing import Any

INSTANCE_ACTIONS = ("stop", "start", "restart", "rotate_keys", "update", "upgrade", "rollback")
MEMBER_ACTIONS = [("instance", "add_worker")] + [
    ("member", key) for key in ("drain", "undrain", "restart", "remove", "replace")
]
ONE_MACHINE = "On one machine there is nothing to add or take away."
MANIFEST: dict[str, Any] = {
    "manifest_version": 1,
    "app_slug": "echo",
    "version": "1.0.0",
    "runtime_backend": "bare_metal",
    "title": "Echo",
    "components": [{"key": "head", "title": "Head"}, {"key": "worker", "title": "Worker"}],
    "topologies": [
        {
            "key": "single_node",
            "title": "One machine",
            "components": {"head": {"min": 1, "max": 1}, "worker": {"min": 1, "max": 1, "shares_with": "head"}},
        },
        {
            "key": "multi_node",
            "title": "Several machines",
            "components": {"head": {"min": 1, "max": 1}, "worker": {"min": 1, "max": None}},
        },
    ],
    "inputs_schema": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"greeting": {"type": "string", "maxLength": 20}},
    },
    "actions": [
        *({"key": key, "title": key, "target": "instance"} for key in INSTANCE_ACTIONS),
        *(
            {"key": key, "title": key, "target": target, "valid_in": ["multi_node"], "reason_when_not": ONE_MACHINE}
            for target, key in MEMBER_ACTIONS
        ),
    ],
}
