"""Passwords, hashed with argon2. Hashing takes long on purpose: call these functions in a thread."""

import functools

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_hasher = PasswordHasher()


def hash_password(password: str) -> str:
    return _hasher.hash(password)


def password_matches(stored: str | None, given: str) -> bool:
    """Return whether the password matches the stored hash. Without a stored hash return False, after the same time."""
    try:
        return _hasher.verify(stored or _unused_hash(), given) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


@functools.cache
def _unused_hash() -> str:
    return _hasher.hash("the hash compared for accounts that do not exist")
