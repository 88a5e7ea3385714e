"""Ids that say what they name and sort by the time they were made."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base32, lower case
ID_PATTERN = r"^[a-z]{2,6}_[0-9a-hjkmnp-tv-z]{26}$"


def new_id(prefix: str) -> str:
    """`prefix_` and 26 characters: 48 bits of milliseconds, then 80 random bits."""
    value = (int(time.time() * 1000) << 80) | secrets.randbits(80)
    return f"{prefix}_{_base32(value)}"


def _base32(value: int) -> str:
    letters = []
    for _ in range(26):
        letters.append(_ALPHABET[value & 31])
        value >>= 5
    return "".join(reversed(letters))
