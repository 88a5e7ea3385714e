"""Enrols lab hosts through the public API: creates a one-time token per host and starts the agent, which enrols itself.

Uses the SDK with a person's bearer token. Safe to repeat: a host that is already a node of this platform keeps its
identity and only gets the agent's current files. Called by `gpuaas-lab enrol` and by `make up`.
"""

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpuaas_lab import agentfiles
from gpuaas_lab.errors import EnrolFailed
from gpuaas_lab.hosts import Lab

if TYPE_CHECKING:
    from gpuaas_sdk import Client

READY_TIMEOUT = 180


@dataclass(frozen=True)
class Enrolled:
    """A host and its node."""

    host: str
    node_id: str
    node_name: str
    address: str
    state: str


def sign_in(api: str, token: str) -> "Client":
    try:
        from gpuaas_sdk import Bearer, Client
    except ImportError as error:
        raise EnrolFailed("The SDK is not installed.", "uv pip install -e sdk -e agent") from error
    return Client(api, Bearer(token))


@contextmanager
def explained() -> Iterator[None]:
    """Convert an error of the platform into a lab error with the platform's message."""
    from gpuaas_sdk.client.errors import GpuaasError

    try:
        yield
    except GpuaasError as error:
        way_out = getattr(error, "way_out", "") or "Check --api and GPUAAS_TOKEN."
        raise EnrolFailed(str(error), way_out) from error


def enrol(lab: Lab, host: str, client: "Client", tenant_id: str, api: str, gpu_model: str = "lab") -> None:
    """Create an enrolment (unless the host is a node of this tenant already), install the agent and start it. Does not
    wait."""
    lab.allow_port(urlsplit(api).port or (443 if api.startswith("https") else 80))
    settings = {"api": api, "gpu_model": gpu_model}
    if not _is_node(lab, host, client, tenant_id):
        settings |= _invite(lab, host, client, tenant_id)
    agentfiles.install(lab, host, settings)


def enrol_all(
    lab: Lab, client: "Client", tenant_id: str, api: str, hosts: Sequence[str] = (), gpu_model: str = "lab"
) -> list[Enrolled]:
    """Enrol every running host (or the named ones) and wait until each is a ready node."""
    chosen = list(hosts) or [host.name for host in lab.status() if host.state == "up"]

    def enrol_host(host: str) -> Enrolled:
        enrol(lab, host, client, tenant_id, api, gpu_model)
        return wait_ready(lab, host, client)

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(enrol_host, chosen))


def wait_ready(lab: Lab, host: str, client: "Client", timeout: float = READY_TIMEOUT) -> Enrolled:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        node_id = agentfiles.node_id(lab, host)
        node = client.get_node(node_id) if node_id else None
        if node and node.state == "ready":
            lab.say(f"{host} is node {node.name} ({node.id})")
            return Enrolled(host, node.id, node.name, node.address, node.state)
        time.sleep(0.2)
    raise EnrolFailed(
        f"Host '{host}' did not become a ready node within {timeout:g} s. Its agent reports:\n"
        + agentfiles.last_words(lab, host),
        f"Check that the host reaches the API: gpuaas-lab ssh {host}, then: gpuaas-agent status",
    )


def tenant_id(client: "Client", tenant: str) -> str:
    """Return the id of a tenant given by id, slug or name."""
    if tenant.startswith("ten_"):
        return tenant
    found = {item.id for item in client.whoami().tenants if tenant in (item.slug, item.name)}
    if len(found) != 1:
        raise EnrolFailed(f"Tenant '{tenant}' not found.", "Pass its id or slug; `gpuaas whoami` lists yours.")
    return found.pop()


def as_json(nodes: Sequence[Enrolled]) -> str:
    return json.dumps([asdict(node) for node in nodes])


def _is_node(lab: Lab, host: str, client: "Client", tenant: str) -> bool:
    """Return True if the host is a node of this platform and tenant; a node of an earlier platform does not count."""
    from gpuaas_sdk.client.errors import Denied, NotFound

    node_id = agentfiles.node_id(lab, host)
    try:
        return node_id is not None and client.get_node(node_id).tenant_id == tenant
    except (NotFound, Denied):
        return False


def _invite(lab: Lab, host: str, client: "Client", tenant: str) -> dict[str, str]:
    """Create an enrolment under the host's name or, if an earlier host had it, the name with a part of its machine
    id."""
    from gpuaas_sdk.client.errors import Conflict

    labels = {"lab": lab.name}
    try:
        made = client.create_enrolment(tenant, node_name=host, labels=labels)
    except Conflict:
        piece = lab.exec(host, ["head", "-c", "6", "/etc/machine-id"]).text
        made = client.create_enrolment(tenant, node_name=f"{host}-{piece}", labels=labels)
    return {"token": made.token, "node_name": made.node_name}
