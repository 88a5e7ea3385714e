"""Repeats the --project, --context and --api flags of this command in the commands that it suggests.

Flags apply to one command only. main stores them; wait, session and placement append them.
"""

from __future__ import annotations

import shlex

_named: list[str] = []


def remember(common: object) -> None:
    """Store the flags of the command line. Environment and context are not stored, since they apply to the next command
    anyway."""
    _named.clear()
    for option in ("project", "context", "api"):
        if value := getattr(common, option, None):
            _named.extend((f"--{option}", value))


def there(command: str) -> str:
    """Return the suggested command with the flags of this one."""
    return f"{command} {shlex.join(_named)}" if _named and command.startswith("gpuaas ") else command
