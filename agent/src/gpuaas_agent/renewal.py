"""The key this host signs in with, and its renewal without a moment in which a crash locks the host out.

Order: next key on disk → registered with the platform → it replaces the current key (kept as the former one) → it is
used, and that retires the former one. Killed anywhere, the next start has a valid key. The platform decides when.
If a replaced key is presented, the platform sends a challenge that only the holder of that key can answer. An intact
host never gets it, so answering proves that two machines have this identity, and an administrator must decide.
"""

import logging
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gpuaas_agent import facts, files, identity
from gpuaas_agent.errors import Refused
from gpuaas_agent.identity import Node
from gpuaas_agent.places import Places

if TYPE_CHECKING:
    from gpuaas_agent.api import Api

log = logging.getLogger("gpuaas_agent")


class Identity:
    """Used by one thread at a time: the caller holds the API's lock."""

    def __init__(self, places: Places, node: Node) -> None:
        self.places, self.node = places, node
        self.key = identity.ensure_key(places.key)

    def sign(self, now: float, **claims: str) -> str:
        return identity.assertion(self.key, self.node.node_id, self.node.issuer, now, **claims)

    def renew(self, api: "Api") -> None:
        """Repeated after any failure: the next key stays the same until it is in use."""
        following = identity.ensure_key(self.places.next_key)
        body = {
            "client_assertion": self.sign(api.now()),
            "public_jwk": identity.public_jwk(following),
            "machine_id": facts.machine_id(self.places.root),
            "boot_id": facts.boot_id(),
        }
        renewed = api.post("/v1/renew-identity", body, signed_in=False)
        self._switch(following)
        log.info("identity %d of this host is in use now", renewed["generation"])

    def mend(self, refused: Refused, api: "Api") -> bool:
        """The platform rejected the key. True if a retry may help."""
        if self._changed_on_disk():
            return True
        if refused.code == "identity_expired":
            self.renew(api)
            return True
        if refused.code == "identity_unknown" and self.places.former_key.exists():
            self._step_back()
            return True
        if refused.code == "identity_superseded":
            api.answer_challenge(self.sign(api.now(), challenge=str(refused.problem.get("challenge", ""))))
        return False

    def _switch(self, following: Ed25519PrivateKey) -> None:
        files.write(self.places.former_key, identity.private_pem(self.key), 0o600)
        files.move(self.places.next_key, self.places.key)
        self.key = following

    def _step_back(self) -> None:
        """A platform restored from an older backup does not know the newest key: register it again as the next one."""
        former = identity.ensure_key(self.places.former_key)
        files.write(self.places.next_key, identity.private_pem(self.key), 0o600)
        files.move(self.places.former_key, self.places.key)
        self.key = former

    def _changed_on_disk(self) -> bool:
        on_disk = identity.ensure_key(self.places.key)
        changed = identity.public_jwk(on_disk) != identity.public_jwk(self.key)
        self.key = on_disk
        return changed
