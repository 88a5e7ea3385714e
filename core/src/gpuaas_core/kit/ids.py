"""Ids with a prefix that names the kind of resource. Ids sort in the order in which they were created.

An id is a prefix, `_` and 26 characters (Crockford base32) for 128 bits:

    64 bits  number of the write transaction, from a sequence of the database (numbers.py)
    16 bits  count inside that transaction
    48 bits  random

Guaranteed: ids of one kind sort by creation. Inside a transaction that is the order of the calls. Between transactions
it holds if one committed before the other began, also in two core processes and with a clock that stands or steps back.
Transactions that overlap have some order, the same for every reader.

Not guaranteed: an id is not secret (its first half can be guessed), has no timestamp, and leaves gaps. Knowing the id
of a resource gives no permission to use it; tokens take their secret bits from `secrets`.
"""

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base32, lower case
ID_PATTERN = r"^[a-z]{2,6}_[0-9a-hjkmnp-tv-z]{26}$"
COUNT_BITS, RANDOM_BITS = 16, 48
RANDOM_BYTES, AT_ONCE = RANDOM_BITS // 8, 16  # an issuer draws the random bits of so many ids with one system call
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]  # the letters of 10 bits
_SHIFTS = range(120, -1, -10)


def new_id(prefix: str) -> str:
    """Create an id with this prefix. Inside `Database.write` ids sort across processes, elsewhere only within this
    process."""
    issuer = _issuer.get()
    place, bits = issuer.next() if issuer else (_unnumbered(), os.urandom(RANDOM_BYTES))
    return f"{prefix}_{_base32(place << RANDOM_BITS | int.from_bytes(bits))}"


def first_number(now_ms: int) -> int:
    """Return a transaction number above those of all ids created before this time, provided that there were at most
    65,536 transactions per millisecond."""
    return (now_ms + 1) << COUNT_BITS


class Issuer:
    """Numbers the ids of one write transaction. The transaction's number is read from the database when the first id is
    created."""

    def __init__(self, take_number: Callable[[], int]) -> None:
        self._take_number = take_number
        self._number, self._count = 0, 0
        self._random = b""

    def next(self) -> tuple[int, bytes]:
        """Return the number and the random bits of the next id."""
        if self._number == 0 or self._count >> COUNT_BITS:
            self._number, self._count = self._take_number(), 0
        place = self._number << COUNT_BITS | self._count
        self._count += 1
        random = self._random or os.urandom(RANDOM_BYTES * AT_ONCE)
        self._random = random[RANDOM_BYTES:]
        return place, random[:RANDOM_BYTES]

    def drop(self) -> None:
        self._number = 0


_issuer: ContextVar[Issuer | None] = ContextVar("issuer", default=None)


@contextmanager
def issued_by(issuer: Issuer) -> Generator[None]:
    token = _issuer.set(issuer)
    try:
        yield
    finally:
        _issuer.reset(token)


def drop_number() -> None:
    """Make the next id of the current write transaction read a new transaction number from the database. Do nothing
    outside a write transaction."""
    if issuer := _issuer.get():
        issuer.drop()


class _ProcessOrder:
    """Rising numbers from this process's clock, for ids that are created outside a write transaction."""

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), 0

    def __call__(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, first_number(time.time_ns() // 1_000_000) << COUNT_BITS)
            return self._last


_unnumbered = _ProcessOrder()


def _base32(value: int) -> str:
    return "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])
