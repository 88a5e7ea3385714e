"""Limits how often a password may be tried. Every try is counted in the database before the password is compared, so
several replicas, a restart or many parallel tries do not help an attacker.

There are three counts, each over a window of 15 minutes:
- The count per account and address: after ten wrong passwords, the password of the account is no longer compared for
  this address. A success resets the count of the account that signed in, never that of another account with the same
  e-mail.
- The count per e-mail and address, whether or not the e-mail has an account: after ten tries the answer is 429. An
  outsider sees only this count, so the answers are the same for an e-mail without an account.
- The count per e-mail over all addresses: each further try waits longer, ten seconds at most; this count rejects no
  sign-in. If an account signed in from this address before, there is no wait, but only that account is compared.

An attacker can invent e-mails, so the counts per e-mail share a fixed number of rows. An address is an IPv4 address or
the /64 network of an IPv6 address.
"""

import asyncio
import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, case, delete, select, update

from ..iam.rows import PrincipalRow
from ..kit.db import delete_some, insert_into
from ..kit.wire import canonical
from .errors import TooManyGuesses
from .tables import sign_in_addresses, wrong_guesses

MOST = 10
WINDOW_MS = 15 * 60 * 1000
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 10.0
ROWS = 2**16  # for each of the two counts per e-mail; each try costs a password hash, so they cannot be filled
MOST_ADDRESSES = 20  # remembered per account: those of its latest sign-ins
REMEMBERED_MS = 90 * 24 * 3600 * 1000

Mac = Callable[[str], str]
pause = asyncio.sleep


@dataclass(frozen=True)
class Try:
    """One sign-in attempt: the accounts to compare the password with, and the seconds to wait before the comparison."""

    email_here: str
    email_everywhere: str
    network: str
    compared: tuple[str, ...]
    wait_s: float


class Throttle:
    """Counts sign-in attempts. The rows have keyed hashes as names, so that the database contains neither e-mails nor
    addresses."""

    def __init__(self, mac: Mac) -> None:
        self._mac = mac

    def begin(self, tx: Connection, email: str, accounts: Sequence[PrincipalRow], address: str | None, now: int) -> Try:
        """Count a sign-in attempt and return it. `accounts` are all accounts with this e-mail. Raises 429 after too
        many attempts with this e-mail from this address."""
        network = network_of(address)
        here, everywhere = self._slot("here", email, network), self._slot("everywhere", email)
        reject(count_try(tx, here, now))
        wait_s = wait_for(_count(tx, everywhere, now, sliding=True)[0])
        known = self._known(tx, accounts, network, now) if wait_s else set[str]()
        if known:  # the others would have to wait, and the wait would reveal that they exist
            accounts, wait_s = [account for account in accounts if account.id in known], 0.0
        ordered = sorted(accounts, key=lambda account: account.id)
        compared = tuple(a.id for a in ordered if not count_try(tx, self._account(a.id, network), now))
        return Try(here, everywhere, network, compared, wait_s)

    def succeed(self, tx: Connection, attempt: Try, account_id: str, now: int) -> None:
        """Record a correct password: reset the counts for this address, subtract the attempt from the count of the
        e-mail over all addresses, and remember the address."""
        reset(tx, attempt.email_here)
        mine, tries = wrong_guesses.c.bucket == attempt.email_everywhere, wrong_guesses.c.tries
        tx.execute(update(wrong_guesses).where(mine).values(tries=tries - 1))
        tx.execute(delete(wrong_guesses).where(mine, tries <= 0))
        reset(tx, self._account(account_id, attempt.network))
        self._remember(tx, account_id, attempt.network, now)

    def _known(self, tx: Connection, accounts: Sequence[PrincipalRow], network: str, now: int) -> set[str]:
        a = sign_in_addresses.c
        prints = [self._print(account.id, network) for account in accounts]
        fresh = select(a.principal_id).where(a.fingerprint.in_(prints), a.last_at > now - REMEMBERED_MS)
        return set(tx.execute(fresh).scalars())

    def _remember(self, tx: Connection, account_id: str, network: str, now: int) -> None:
        a = sign_in_addresses.c
        row = {"principal_id": account_id, "fingerprint": self._print(account_id, network), "last_at": now}
        new = insert_into(tx, sign_in_addresses).values(**row)
        tx.execute(new.on_conflict_do_update(index_elements=[a.principal_id, a.fingerprint], set_={"last_at": now}))
        mine = a.principal_id == account_id
        newest = select(a.fingerprint).where(mine).order_by(a.last_at.desc(), a.fingerprint).limit(MOST_ADDRESSES)
        tx.execute(delete(sign_in_addresses).where(mine, a.fingerprint.not_in(newest.scalar_subquery())))

    def _slot(self, kind: str, *what: str) -> str:
        number = int.from_bytes(self._mac(canonical(["guess", kind, *what])).encode()[:8], "big") % ROWS
        return f"{kind}:{number}"

    def _account(self, account_id: str, network: str) -> str:
        return f"account:{self._print(account_id, network)}"

    def _print(self, account_id: str, network: str) -> str:
        return self._mac(canonical(["address", account_id, network]))


def wait_for(tries: int) -> float:
    """Return the seconds to wait before the password is compared. `tries` is the number of attempts for the e-mail from
    all addresses; up to ten of them cause no wait."""
    beyond = tries - MOST
    return 0.0 if beyond <= 0 else min(FIRST_WAIT_S * 2 ** min(beyond - 1, 10), LONGEST_WAIT_S)


def network_of(address: str | None) -> str:
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return address or ""
    if isinstance(parsed, ipaddress.IPv6Address):
        mapped = parsed.ipv4_mapped
        return str(mapped or ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def count_try(tx: Connection, bucket: str, now: int) -> int:
    """Count one attempt. Return 0 if the password may be compared, otherwise the seconds until the next attempt is
    allowed."""
    tries, since = _count(tx, bucket, now)
    return 0 if tries <= MOST else max(1, (since + WINDOW_MS - now + 999) // 1000)


def reset(tx: Connection, bucket: str) -> None:
    tx.execute(delete(wrong_guesses).where(wrong_guesses.c.bucket == bucket))


def forget_old(tx: Connection, now: int) -> int:
    guesses = delete_some(tx, wrong_guesses, wrong_guesses.c.since <= now - WINDOW_MS)
    return max(guesses, delete_some(tx, sign_in_addresses, sign_in_addresses.c.last_at <= now - REMEMBERED_MS))


def reject(wait_s: int) -> None:
    if wait_s:
        raise TooManyGuesses(f"Try again in {wait_s} seconds.", retry_after_s=wait_s)


def _count(tx: Connection, bucket: str, now: int, *, sliding: bool = False) -> tuple[int, int]:
    """Count one attempt; return the number of attempts and the start of their 15-minute window. With `sliding`, every
    attempt restarts the window.

    A single statement does this, so that parallel attempts get different numbers.
    """
    g = wrong_guesses.c
    old = g.since <= now - WINDOW_MS
    more = {"tries": case((old, 1), else_=g.tries + 1), "since": now if sliding else case((old, now), else_=g.since)}
    new = insert_into(tx, wrong_guesses).values(bucket=bucket, tries=1, since=now)
    row = tx.execute(new.on_conflict_do_update(index_elements=[g.bucket], set_=more).returning(g.tries, g.since)).one()
    return row.tries, row.since
