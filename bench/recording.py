"""Which SQL the core sends for a request: recorded from the core itself at the start of a run, sent again by `bare.py`.

A core in this process serves the requests, one after the other, on its own copy of the store. An event hook of
SQLAlchemy keeps the text and the parameters of each statement as the driver gets them. BEGIN and COMMIT are left out:
they belong to the transaction in which the statements are sent again.
"""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gpuaas_core.http.call import Platform
from sqlalchemy import event


@dataclass
class Sent:
    text: str
    parameters: object  # a tuple or a dict, as the driver takes it; a list of them with `many`
    many: bool


@dataclass
class Request:
    statements: list[Sent] = field(default_factory=list)
    status: int = 200
    body: bytes = b""


@dataclass
class Recorded:
    creates: list[Request] = field(default_factory=list)
    claims: list[Request] = field(default_factory=list)
    completes: dict[str, Request] = field(default_factory=dict)  # by operation id

    def save(self, file: Path) -> None:
        file.write_bytes(pickle.dumps(self))

    @staticmethod
    def load(file: Path) -> "Recorded":
        loaded = pickle.loads(file.read_bytes())
        assert isinstance(loaded, Recorded)
        return loaded

    def typical(self) -> dict[str, Request]:
        """One request of each kind, from the middle."""
        operation = list(self.completes)[len(self.completes) // 2]
        create, claim = self.creates[len(self.creates) // 2], self.claims[len(self.claims) // 2]
        return {"create": create, "claim": claim, "complete": self.completes[operation]}


class Recorder:
    def __init__(self, platform: Platform) -> None:
        self._current: Request | None = None
        for engine in (platform.db._write_engine, platform.db._read_engine):  # pyright: ignore[reportPrivateUsage]
            event.listen(engine, "before_cursor_execute", self._record)

    def _record(
        self, _connection: object, _cursor: object, text: str, parameters: object, _context: object, many: bool
    ) -> None:
        if self._current is not None and not text.startswith("BEGIN"):
            self._current.statements.append(Sent(text, parameters, many))

    @contextmanager
    def request(self) -> Iterator[Request]:
        self._current = current = Request()
        try:
            yield current
        finally:
            self._current = None
