"""The words that told this command where to act; a command it suggests needs the same ones.

`--project research` holds for one command only: without it the next one would ask which project is meant.
main keeps them, endings and session use them.
"""

from __future__ import annotations

import shlex

_named: list[str] = []


def remember(common: object) -> None:
    """What was said on this command's own line; the environment and the context say it for the next one, too."""
    _named.clear()
    for option in ("project", "context", "api"):
        if said := getattr(common, option, None):
            _named.extend((f"--{option}", said))


def there(command: str) -> str:
    """The same command, for the same place."""
    return f"{command} {shlex.join(_named)}" if _named and command.startswith("gpuaas ") else command
