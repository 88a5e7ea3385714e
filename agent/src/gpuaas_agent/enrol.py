"""Enrols the host once, with a one-time token. If a crash interrupts the enrolment, the next start completes it.

Order: own key on disk → request → node id on disk → trust applied → token removed. After a kill at any point, the next
start continues from what is on disk; the platform answers the same token from the same key and machine with the same
node.
"""

import json

from gpuaas_agent import config, facts, files, identity
from gpuaas_agent.api import Api
from gpuaas_agent.config import Config
from gpuaas_agent.errors import AgentError, NotConfigured
from gpuaas_agent.identity import Node
from gpuaas_agent.places import Places
from gpuaas_agent.sshd import Sshd


def ensure(places: Places, settings: Config, sshd: Sshd) -> Node:
    """Return the node of this host. The host is enrolled first if it has no node yet or its settings have a new
    token."""
    node = Node.load(places)
    if node and settings.token and node.token_hash != identity.token_hash(settings.token):
        _forget(places)
        node = None
    if node is None:
        node = _ask(places, settings, sshd)
    config.forget_token(places)
    return node


def _ask(places: Places, settings: Config, sshd: Sshd) -> Node:
    if not settings.token:
        raise NotConfigured(
            "This host is not enrolled and has no enrolment token.",
            f'Create a token (tenant › enrolments) and write it as "token" into {places.config}.',
        )
    key = identity.ensure_key(places.key)
    body = {
        "token": settings.token,
        "public_jwk": identity.public_jwk(key),
        "ssh_host_public_key": host_public_key(places),
        "address": settings.address or facts.address_towards(settings.api),
        "ssh_port": sshd.port(),
        "facts": facts.collect(places.root, settings.gpu_model),
    }
    answer = Api(settings.api, settings.ca_file).post("/v1/enrol", body, signed_in=False)
    files.write(places.trust, json.dumps(answer["trust"]), 0o600)
    node = Node(answer["node_id"], answer["issuer"], identity.token_hash(settings.token))
    node.save(places)
    return node


def host_public_key(places: Places) -> str:
    line = files.read(places.host_public_key)
    if not line:
        raise AgentError(f"{places.host_public_key} does not exist.", "Install openssh-server, or run `ssh-keygen -A`.")
    return " ".join(line.decode().split()[:2])


def _forget(places: Places) -> None:
    """Delete the former identity, so that the host can enrol with a new token. The keys are deleted first, so that no
    key of the former identity outlives a crash."""
    for path in (places.key, places.next_key, places.former_key, places.trust, places.node):
        files.remove(path)
