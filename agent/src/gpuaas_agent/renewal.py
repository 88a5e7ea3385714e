"""Renews the key with which this host signs in. A crash at any moment leaves a valid key.

Order: next key on disk → registered with the platform → it replaces the current key (kept as the former one) → its
first use retires the former key. The platform decides when to renew. If a replaced key is presented, the platform sends
a challenge that only a machine with that key can answer. An intact host never gets the challenge, so answering proves
that two machines have this identity, and an administrator must decide.
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
    """The key with which this host signs in, and its renewal. Not thread-safe: the caller must hold the lock of
    `Api`."""

    def __init__(self, places: Places, node: Node) -> None:
        self.places, self.node = places, node
        self.key = identity.ensure_key(places.key)

    def sign(self, now: float, **claims: str) -> str:
        return identity.assertion(self.key, self.node.node_id, self.node.issuer, now, **claims)

    def renew(self, api: "Api") -> None:
        """Register a new key with the platform and switch to it. Safe to repeat after a crash: the same new key is sent
        until the platform has accepted it."""
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
        """Recover after the platform rejected the key. Returns True if another sign-in may succeed, otherwise False."""
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
        """Switch to the previous key, for a platform restored from a backup that does not have the newest key. The
        newest key becomes the next key, so that the next renewal registers it again."""
        former = identity.ensure_key(self.places.former_key)
        files.write(self.places.next_key, identity.private_pem(self.key), 0o600)
        files.move(self.places.former_key, self.places.key)
        self.key = former

    def _changed_on_disk(self) -> bool:
        on_disk = identity.ensure_key(self.places.key)
        changed = identity.public_jwk(on_disk) != identity.public_jwk(self.key)
        self.key = on_disk
        return changed
