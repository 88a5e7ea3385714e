"""The platform's side of tasks, in this process: it signs, leases, renews and hears like the core, and keeps count.

`Host` is a machine below a temporary root with this desk as its platform. Programs are recorded by a stand-in for
systemctl, so that a test can say what really ran.
"""

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from gpuaas_agent import files
from gpuaas_agent.errors import Refused, Unreachable
from gpuaas_agent.places import Places
from gpuaas_agent.tasks.acts import collect_evidence, run_unit, upgrade_agent, wipe
from gpuaas_agent.tasks.document import CONTEXT, KINDS
from gpuaas_agent.tasks.follow import Tasks
from gpuaas_agent.tasks.inbox import Inbox

NODE = "node_1"
FILE = {"path": "/opt/gpuaas/first/run.conf", "content": "threads = 4\n", "mode": "0640"}
UNIT = {"unit": "gpuaas-first.service", "action": "restart"}
SYSTEMCTL = """#!/bin/sh
echo "$*" >>"{log}"
case "$*" in *show*) echo ActiveState=inactive;; esac
"""


class Desk:
    """Everything it was told and was asked is an attribute; `fail` makes a verb raise."""

    def __init__(self) -> None:
        self.key, self.stranger = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        self.tasks: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.fail: dict[str, Exception] = {}
        self.now = time.time
        self.deliveries: dict[str, list[bytes]] = {}

    def ask(self, kind: str, arguments: Any, /, **more: Any) -> str:
        task_id = f"task_{len(self.tasks) + 1}"
        now = int(self.now())
        said = {"task_id": task_id, "node_id": NODE, "allocation_id": "alloc_1", "operation_id": "op_1", "epoch": 1}
        said |= {"kind": kind, "arguments": arguments, "not_before": now - 60, "expires_at": now + 600}
        self.tasks[task_id] = {"said": said | more, "attempt": 0, "state": "queued", "results": [], "renewals": 0}
        return task_id

    def sign(self, said: dict[str, Any], key: Ed25519PrivateKey | None = None) -> dict[str, str]:
        payload = json.dumps(said)
        signature = (key or self.key).sign(CONTEXT + payload.encode())
        return {"payload": payload, "key_id": "k1", "signature": base64.b64encode(signature).decode()}

    def leased(self, task_id: str) -> dict[str, Any]:
        task = self.tasks[task_id]
        task["attempt"] += 1
        task["state"] = "leased"
        said = task["said"] | {"attempt": task["attempt"]}
        return {name: said[name] for name in ("task_id", "attempt", "epoch")} | {"document": self.sign(said)}

    def trust(self) -> dict[str, Any]:
        key = base64.b64encode(self.key.public_key().public_bytes_raw()).decode()
        return {"task_keys": [{"id": "k1", "public_key": key}], "principals": {"root": ["alloc_1", "alloc_2"]}}

    def give(self, inbox: Inbox) -> None:
        """What a poll of a free agent would be given: the first task that it has not begun."""
        self.calls.append("give")
        if "give" in self.fail:
            raise self.fail["give"]
        waiting = [name for name, task in self.tasks.items() if task["state"] in ("queued", "leased")]
        if waiting:
            inbox.give(self.leased(waiting[0]))

    # -- what the agent calls

    def post(self, path: str, body: dict[str, Any], **_: Any) -> Any:
        verb = path.rsplit("/", 1)[1]
        self.calls.append(verb)
        if verb in self.fail:
            raise self.fail[verb]
        task = self.tasks[path.split("/")[-2]]
        if body["attempt"] != task["attempt"] or task["state"] not in ("leased", "running", body.get("outcome")):
            raise Refused(409, "stale_task", "Not yours.", "Stop.")
        if verb == "renew":
            task["state"], task["renewals"] = "running", task["renewals"] + 1
            return {"lease_expires_in_s": 30}
        task["state"] = body["outcome"]
        task["results"].append(body)
        return {}

    def download(self, path: str) -> Any:
        yield from self.deliveries[path.rsplit("/", 1)[1]]


class _Polled(Inbox):
    """An inbox that is filled when it is asked, as if a poll had been answered just then."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk

    def take(self, wait_s: float) -> Any:
        self.desk.give(self)
        return super().take(0)


class Host:
    def __init__(self, root: Path, desk: Desk) -> None:
        self.places, self.desk, self.log = Places(root), desk, root / "ran.log"
        files.write(self.places.trust, json.dumps(desk.trust()))
        (root / "proc").mkdir(exist_ok=True)
        script = root / "systemctl"
        script.write_text(SYSTEMCTL.format(log=self.log))
        script.chmod(0o755)
        for module in (run_unit, wipe, collect_evidence, upgrade_agent):
            module.SYSTEMCTL = str(script)

    def round(self, acts: Any = None) -> None:
        Tasks(self.places, self.desk, NODE, acts, _Polled(self.desk)).once()

    @property
    def ran(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def at(self, path: str) -> Path:
        return self.places.root / path.lstrip("/")

    def all_files(self) -> set[str]:
        """Everything tasks could have written, apart from the agent's own notes."""
        own = (self.places.state, self.places.root / "proc")
        found = [Path(folder) / name for folder, _, names in os.walk(self.places.root) for name in names]
        return {str(path) for path in found if not any(path.is_relative_to(one) for one in own)}


SAMPLES: dict[str, dict[str, Any]] = {
    "write_file": FILE,
    "fetch_artifact": {"delivery": "dlv_1", "sha256": "0" * 64, "size": 3, "path": FILE["path"], "mode": "0644"},
    "run_unit": UNIT,
    "collect_evidence": {"what": ["disk", "files"], "files": [FILE["path"]]},
    "wipe": {},
    "upgrade_agent": {"sha256": "0" * 64, "size": 3, "version": "9.9.9"},
}
assert SAMPLES.keys() == KINDS.keys()
UNREACHABLE = Unreachable("http://core", "told to be away")
