"""Purposes of machine access, registered by the rooms that grant it: for an operation, to observe, for a person.

Each room decides when its reason ends. `api/` registers the purposes when the process starts; `revocation` asks each of
them every second which live grants have lost their reason.
"""

from collections.abc import Iterable
from typing import Protocol

from sqlalchemy import Connection

from .rows import Ended


class Purpose(Protocol):
    @property
    def name(self) -> str:
        """The name of the purpose, stored with each grant."""
        ...

    @property
    def renewable(self) -> bool:
        """Whether holders can get another certificate at any time. A rotation of an authority revokes such grants at
        once."""
        ...

    def ended(self, tx: Connection, now: int) -> Iterable[Ended]:
        """Return the live grants of this purpose whose reason has ended. Called every second, so one indexed
        statement."""
        ...


_PURPOSES: dict[str, Purpose] = {}


def register(purpose: Purpose) -> None:
    _PURPOSES[purpose.name] = purpose


def registered() -> list[Purpose]:
    return list(_PURPOSES.values())


def renewable() -> list[str]:
    return [purpose.name for purpose in _PURPOSES.values() if purpose.renewable]
