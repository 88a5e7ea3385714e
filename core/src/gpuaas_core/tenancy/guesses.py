"""Wrong passwords are counted per account and address, before the password is looked at: ten in a quarter of an hour.

The count stands under a keyed fingerprint whether or not the account exists, so the answer tells nothing about that; it
is in the store, so several cores and a restart do not help a guesser.
"""

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from .errors import TooManyGuesses
from .tables import wrong_guesses

MOST = 10
WINDOW_MS = 15 * 60 * 1000


def take(tx: Connection, bucket: str, now: int) -> int:
    """Counts one try. Returns the seconds to wait, 0 if the password may be looked at."""
    mine = wrong_guesses.c.bucket == bucket
    query = select(wrong_guesses).where(mine).with_for_update()
    row = tx.execute(query).first()
    if row is None:
        try:
            with tx.begin_nested():
                tx.execute(insert(wrong_guesses).values(bucket=bucket, tries=1, since=now))
            return 0
        except IntegrityError:  # somebody else's first try was quicker
            row = tx.execute(query).one()
    if row.since <= now - WINDOW_MS:
        tx.execute(update(wrong_guesses).where(mine).values(tries=1, since=now))
        return 0
    if row.tries >= MOST:
        return max(1, (row.since + WINDOW_MS - now + 999) // 1000)
    tx.execute(update(wrong_guesses).where(mine).values(tries=row.tries + 1))
    return 0


def forget(tx: Connection, bucket: str) -> None:
    tx.execute(delete(wrong_guesses).where(wrong_guesses.c.bucket == bucket))


def forget_old(tx: Connection, now: int) -> None:
    tx.execute(delete(wrong_guesses).where(wrong_guesses.c.since <= now - WINDOW_MS))


def refuse(wait_s: int) -> None:
    if wait_s:
        raise TooManyGuesses(f"Try again in {wait_s} seconds.", retry_after_s=wait_s)
