"""The accounts of this stack: created once, stored in one file that only root can read, printed by `make up`."""

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

ADMIN, BOSS, USER = "admin@gpuaas.example", "dana@demo.example", "sam@demo.example"


@dataclass(frozen=True)
class Credentials:
    admin_password: str
    tenant_admin_password: str
    user_password: str

    @classmethod
    def keep(cls, path: Path) -> "Credentials":
        if path.exists():
            return cls(**json.loads(path.read_text()))
        made = cls(*(f"demo-{secrets.token_urlsafe(9)}" for _ in range(3)))
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(json.dumps(asdict(made), indent=2) + "\n")
        return made
