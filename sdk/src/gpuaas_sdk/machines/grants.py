"""Where a Machine gets its certificate: from the claim of an operation (Work) or from an observation."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from ..client.models import GrantView


class Grants(Protocol):
    def check(self) -> None:
        """Raise StaleClaim if no further command may be sent."""
        ...

    def expecting(self, seconds: float) -> AbstractContextManager[None]:
        """A command inside the block may run this long without a sign of life."""
        ...

    async def grant(self, allocation_id: str, ssh_public_key: str) -> GrantView:
        """A certificate for this key on the host of one allocation."""
        ...
