"""Plans: the statements that a route sends to the database, learned from requests that were answered without a plan.

A plan has the statements of the route and, for each of their values, its origin: a named input of the request (an id in
the path, the hash of the token), or a constant. For the next request the plan is only a guess. Fetched rows are used
for exactly the statement and values they were fetched with, so a wrong guess costs time and nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.engine import Dialect

from ..kit.prepared import Prepared, RawRows, direct

T = TypeVar("T")
MOST_STATEMENTS = 12
FEW_MISSES, HITS_PER_MISS = 20, 5  # a route that misses more often is read in the ordinary way from then on
MOST_UNUSED = 100  # a statement that so many reads in a row did not need is no longer sent ahead
SHORT, SMALL = 16, 10_000  # a longer text or a larger number that no input has was found by an earlier statement


class Missed(Exception):
    """Raised when a read needs rows that were not fetched ahead."""


@dataclass(frozen=True)
class Guess:
    """One statement of a plan: for each of its values, the input of the request or the constant that it comes from."""

    statement: Prepared
    inputs: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, object], ...]

    def values(self, inputs: Mapping[str, object]) -> dict[str, object]:
        return {**{name: inputs[source] for name, source in self.inputs}, **dict(self.constants)}


class Question:
    """A statement of a plan as it is sent: its text, and for each parameter an input or the encoded constant."""

    def __init__(self, guess: Guess, dialect: Dialect, inputs: Mapping[str, object]) -> None:
        values, sources = guess.values(inputs), dict(guess.inputs)
        text = guess.statement.text(dialect, values)
        if not all(text.is_sent_as_given(name) for name in sources):
            raise Missed
        self.guess, self.sql, self.converted = guess, text.sql, text.converted
        constants = zip(text.names, text.parameters(values), strict=True)
        self._parts = [(sources.get(name), constant) for name, constant in constants]
        self.unused = 0  # how many reads in a row did not need its rows

    def parameters(self, inputs: Mapping[str, bytes | None]) -> list[bytes | None]:
        return [constant if source is None else inputs[source] for source, constant in self._parts]


@dataclass
class Plan:
    """The statements of one route. When a read needs a statement that the plan does not have, `learn` adds it;
    `drop_unused` removes those that are no longer needed, such as a statement whose rows the core caches."""

    guesses: list[Guess] = field(default_factory=list[Guess])
    needs: set[str] = field(default_factory=set[str])  # names of inputs
    misses: int = 0
    hits: int = 0
    _questions: list[Question] = field(default_factory=list[Question])

    @property
    def given_up(self) -> bool:
        return self.misses > FEW_MISSES and self.misses * HITS_PER_MISS > self.hits

    def questions(self, dialect: Dialect, inputs: Mapping[str, object]) -> list[Question]:
        for guess in self.guesses[len(self._questions) :]:
            self._questions.append(Question(guess, dialect, inputs))
        return self._questions

    def drop_unused(self) -> None:
        """Remove the statements that many reads in a row did not need. Reads under way keep the list they asked."""
        if all(one.unused < MOST_UNUSED for one in self._questions):
            return
        kept = [one for one in self._questions if one.unused < MOST_UNUSED]
        self.guesses = [*(one.guess for one in kept), *self.guesses[len(self._questions) :]]
        self._questions = kept
        self.needs = {source for guess in self.guesses for _, source in guess.inputs}

    def learn(self, sent: Sequence[tuple[Prepared, Mapping[str, object]]], inputs: Mapping[str, object]) -> None:
        sources = {value: name for name, value in inputs.items()}
        for statement, values in sent:
            guess = _guess(statement, values, sources)
            if guess and guess not in self.guesses and len(self.guesses) < MOST_STATEMENTS:
                self.guesses.append(guess)
                self.needs.update(source for _, source in guess.inputs)


def _guess(statement: Prepared, values: Mapping[str, object], sources: Mapping[object, str]) -> Guess | None:
    inputs: list[tuple[str, str]] = []
    constants: list[tuple[str, object]] = []
    for name, value in values.items():
        if not isinstance(value, str | int | None):
            return None  # a list has a text for each length
        if value in sources:
            inputs.append((name, sources[value]))
        elif (isinstance(value, str) and len(value) > SHORT) or (isinstance(value, int) and value > SMALL):
            return None
        else:
            constants.append((name, value))
    return Guess(statement, tuple(inputs), tuple(constants))


class Recorder:
    """Records the statements of a read that runs without rows fetched ahead."""

    def __init__(self) -> None:
        self.sent: list[tuple[Prepared, Mapping[str, object]]] = []

    def run(self, tx: Connection, fn: Callable[[Connection], T]) -> T:
        self.sent = []  # the transaction may be repeated
        known = direct(tx)
        known.source = self
        try:
            return fn(tx)
        finally:
            known.source = None

    def rows(self, statement: Prepared, values: Mapping[str, object]) -> None:
        self.sent.append((statement, dict(values)))


class Answers:
    """The rows that were fetched ahead, by statement and values."""

    def __init__(self, asked: Sequence[Question], found: Sequence[RawRows], inputs: Mapping[str, object]) -> None:
        self._asked, self._found, self._inputs = asked, found, inputs
        for one in asked:
            one.unused += 1

    def rows(self, statement: Prepared, values: Mapping[str, object]) -> RawRows:
        for asked, rows in zip(self._asked, self._found, strict=True):
            if asked.guess.statement is statement and asked.guess.values(self._inputs) == values:
                asked.unused = 0
                return asked.converted(rows)
        raise Missed
