"""Repeats the --project, --context and --api flags of this command in the commands that it suggests.

Flags apply to one command only. main stores them; wait, session and placement append them.
"""

from __future__ import annotations

import shlex

_named: list[str] = []


def remember(common: object) -> None:
    """Store the --project, --context and --api flags of the command line. Values from the environment or the context
    are not stored, since they apply to the next command anyway."""
    _named.clear()
    for option in ("project", "context", "api"):
        if value := getattr(common, option, None):
            _named.extend((f"--{option}", value))


def there(command: str) -> str:
    """Return the suggested command with the stored flags added. Text that is not a `gpuaas` command is returned
    unchanged."""
    return f"{command} {shlex.join(_named)}" if _named and command.startswith("gpuaas ") else command
