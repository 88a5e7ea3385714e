"""The stored contexts: platforms by name, each with address, token and default project.

Used by session, login and `gpuaas context`. The contexts are stored in one JSON file that only its owner can read.
Environment variables take precedence over the file, so that automation needs no file.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

FIRST = "default"  # name of the context in a file of version 0.1.0, which had one platform


@dataclass(frozen=True)
class Config:
    """One context: a platform and an account on it."""

    api: str = ""
    token: str = ""
    email: str = ""
    project: str = ""

    @classmethod
    def read(cls, data: dict[str, Any]) -> Config:
        known = {one.name for one in fields(cls)}
        return cls(**{name: str(value) for name, value in data.items() if name in known and value})

    @classmethod
    def effective(cls, api: str | None = None, context: str | None = None) -> Config:
        """Return the context to use, by precedence: `--api`, `--context`, environment, current context.

        A stored token is sent only to the address that issued it. If another address is given, the context with that
        address is used; if there is none, no stored token is sent.
        """
        env = os.environ.get if not context else lambda _: ""
        wanted = (api or env("GPUAAS_API") or "").rstrip("/")
        chosen = Contexts.saved().chosen(context, wanted)
        api = wanted or chosen.api
        token = env("GPUAAS_TOKEN") or (chosen.token if api == chosen.api else "")
        return cls(api=api, token=token, email=chosen.email, project=env("GPUAAS_PROJECT") or chosen.project)


@dataclass(frozen=True)
class Contexts:
    """All stored contexts, and which of them is the current one."""

    current: str = ""
    known: dict[str, Config] = field(default_factory=dict)

    @classmethod
    def path(cls) -> Path:
        return Path(os.environ.get("GPUAAS_CONFIG") or Path.home() / ".config" / "gpuaas" / "config.json")

    @classmethod
    def saved(cls) -> Contexts:
        """Load the stored contexts. A missing or broken file counts as empty, and `gpuaas login` rewrites it."""
        try:
            read = json.loads(cls.path().read_text())
            if "contexts" not in read:
                return cls(FIRST, {FIRST: Config.read(read)})
            return cls(str(read["current"]), {name: Config.read(one) for name, one in read["contexts"].items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def chosen(self, context: str | None, api: str = "") -> Config:
        """Return the context with this name or with the name in GPUAAS_CONTEXT; without a name, a context with this
        address, otherwise the current context. Raises CliError if no context has the name."""
        if name := context or os.environ.get("GPUAAS_CONTEXT"):
            return self.named(name)
        current = self.known.get(self.current, Config())
        if not api or current.api == api:
            return current
        return next((one for one in self.known.values() if one.api == api), current)

    def named(self, name: str) -> Config:
        from . import failures

        if name not in self.known:
            names = ", ".join(sorted(self.known)) or "none yet"
            way_out = f"Contexts: {names}. Create one: gpuaas login --context {name} --api https://…"
            raise failures.CliError(f"There is no context called {name}.", way_out, failures.NOT_FOUND)
        return self.known[name]

    def name_for(self, api: str) -> str:
        """Return the context name for a sign-in without --context: the name of the existing context for this server
        address, or a new name derived from the address."""
        by_api = [name for name, one in self.known.items() if one.api == api]
        if self.current in by_api:
            return self.current
        return by_api[0] if by_api else api.split("://", 1)[-1]

    def put(self, name: str, context: Config) -> Contexts:
        return replace(self, known={**self.known, name: context})

    def without(self, name: str) -> Contexts:
        left = {known: one for known, one in self.known.items() if known != name}
        return Contexts("" if name == self.current else self.current, left)

    def save(self) -> None:
        """Write all contexts to the file, atomically and with mode 0600."""
        path = self.path()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_name(f".{path.name}.new")
        new.unlink(missing_ok=True)  # a leftover file would keep its permissions
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            kept = {name: asdict(one) for name, one in self.known.items()}
            json.dump({"current": self.current, "contexts": kept}, file, indent=2)
            file.write("\n")
        os.replace(new, path)
