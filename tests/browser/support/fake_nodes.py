"""Machines that exist only to the platform: they enrol, take up trust and go on saying that they are there."""

import contextlib
import secrets
import threading
from typing import Any

import httpx2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from gpuaas_lab.stack.seed import Demo
from gpuaas_sdk import ServiceAccount
from gpuaas_sdk.client.auth import ASSERTION_TYPE

EVERY_S = 8


class Machine:
    def __init__(self, http: httpx2.Client, demo: Demo, name: str, number: int, gpus: int) -> None:
        self.http, self.generation = http, 0
        gpu = [{"path": f"/dev/nvidia{place}", "model": "H100"} for place in range(gpus)]
        self.facts = {"hostname": name, "cpus": 64, "memory_mb": 524288, "gpus": gpu, "os": "Debian 12"}
        self.facts["machine_id"] = f"{name}-{secrets.token_hex(4)}"
        key = ServiceAccount.generate(project_id="", api=str(http.base_url))
        host_key = Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        token = demo.boss.create_enrolment(demo.tenant_id, node_name=name, sku="h100-8").token
        body: dict[str, Any] = {"token": token, "public_jwk": key.public_jwk, "ssh_host_public_key": host_key.decode()}
        self.id = self._post("/v1/enrol", body | {"address": f"10.20.0.{10 + number}", "facts": self.facts})["node_id"]
        self.account = key.registered(self.id)
        self.take_up_trust()

    @property
    def _token(self) -> str:
        form = {"grant_type": "client_credentials", "client_assertion_type": ASSERTION_TYPE}
        answer = self.http.post("/v1/token", data=form | {"client_assertion": self.account.assertion()})
        return answer.raise_for_status().json()["access_token"]

    def take_up_trust(self) -> None:
        own = {"Authorization": f"Bearer {self._token}"}
        if trust := self._poll(own)["trust"]:
            self.generation = trust["generation"]
            self._poll(own)

    def _poll(self, own: dict[str, str]) -> Any:
        said = {"applied_generation": self.generation, "acknowledged_generation": 0, "facts": self.facts}
        return {"trust": None} | (self._post(f"/v1/nodes/{self.id}/poll", said, own) or {})

    def _post(self, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> Any:
        sent = {"Idempotency-Key": secrets.token_hex(16)} | (headers or {})
        answer = self.http.post(path, json=body, headers=sent).raise_for_status()
        return answer.json() if answer.content else None


class Fleet:
    def __init__(self, api: str, demo: Demo) -> None:
        self.http = httpx2.Client(base_url=api, timeout=30)
        self.demo, self.machines = demo, dict[str, Machine]()
        self.silent = set[str]()  # names of machines that say nothing for now
        self._over = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._beating.start()

    def add(self, name: str, project: str | None = None, gpus: int = 8) -> None:
        """A machine of the tenant, held by a project if one is named."""
        machine = self.machines[name] = Machine(self.http, self.demo, name, len(self.machines), gpus)
        if project:
            self.demo.boss.create_allocation(self.demo.projects[project], node_id=machine.id, name=name)
            machine.take_up_trust()

    def _beat(self) -> None:
        while not self._over.wait(EVERY_S):
            for name, machine in list(self.machines.items()):
                if name in self.silent:
                    continue
                with contextlib.suppress(httpx2.HTTPError):  # the core may be away for a moment: a test stops it
                    machine.take_up_trust()

    def close(self) -> None:
        self._over.set()
        self._beating.join(30)
        self.http.close()
