"""The interface through which a Machine gets its SSH certificates: implemented by Work (with a claim) and
ObserveContext."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from ..client.models import GrantView


class Grants(Protocol):
    def check(self) -> None:
        """Raise StaleClaim if no further command may be sent to the host."""
        ...

    def expecting(self, seconds: float) -> AbstractContextManager[None]:
        """Allow a command inside the block to run for this many seconds without a sign of progress."""
        ...

    async def grant(self, allocation_id: str, ssh_public_key: str) -> GrantView:
        """Request a certificate for this public key on the host of one allocation."""
        ...
