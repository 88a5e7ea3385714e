"""What the CLI remembers between commands: the address, the token, a default project. Used by session and login.

One JSON file, readable by its owner only. The environment wins over it, so that automation needs no file at all.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Config:
    api: str = ""
    token: str = ""
    email: str = ""
    project: str = ""

    @classmethod
    def path(cls) -> Path:
        return Path(os.environ.get("GPUAAS_CONFIG") or Path.home() / ".config" / "gpuaas" / "config.json")

    @classmethod
    def saved(cls) -> Config:
        """What the file says; a missing or broken file is an empty one, `gpuaas login` writes it anew."""
        try:
            read = json.loads(cls.path().read_text())
        except (OSError, ValueError):
            return cls()
        known = {field.name for field in fields(cls)}
        return cls(**{name: str(value) for name, value in read.items() if name in known and value})

    @classmethod
    def effective(cls, api: str | None = None) -> Config:
        """The file, the environment on top, `--api` above all. A saved token only goes to the address that gave it."""
        saved, env = cls.saved(), os.environ.get
        api = (api or env("GPUAAS_API") or saved.api).rstrip("/")
        token = env("GPUAAS_TOKEN") or (saved.token if api == saved.api else "")
        return cls(api=api, token=token, email=saved.email, project=env("GPUAAS_PROJECT") or saved.project)

    def save(self) -> None:
        """Private from the first byte on, and never half written."""
        path = self.path()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_name(f".{path.name}.new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(self), file, indent=2)
            file.write("\n")
        os.replace(new, path)
