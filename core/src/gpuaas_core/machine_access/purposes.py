"""The purposes of machine access: to work on an operation, to observe a machine, or a session of a person.

The room that grants access for a purpose decides when the reason for a grant has ended. `api/` registers the purposes
when the process starts; `revocation` asks each purpose every second which live grants have lost their reason.
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
        """True if a holder can get another certificate at any time. A rotation of an authority revokes these grants at
        once."""
        ...

    def ended(self, tx: Connection, now: int) -> Iterable[Ended]:
        """Return the live grants of this purpose whose reason has ended. Called every second, so it must use one
        statement that an index supports."""
        ...


_PURPOSES: dict[str, Purpose] = {}


def register(purpose: Purpose) -> None:
    _PURPOSES[purpose.name] = purpose


def registered() -> list[Purpose]:
    return list(_PURPOSES.values())


def renewable() -> list[str]:
    return [purpose.name for purpose in _PURPOSES.values() if purpose.renewable]
