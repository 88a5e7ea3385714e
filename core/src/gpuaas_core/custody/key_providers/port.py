"""The interface of every holder of the master key, and its errors."""

from typing import Protocol

from ...kit.problems import Problem


class CustodyUnavailable(Problem):
    status, code, title = 503, "custody_unavailable", "Key custody not reachable"
    retryable = True
    way_out = "Retry in a moment. If it keeps failing, the platform operator should check `gpuaas-core custody status`."


class CustodyFailed(Problem):
    status, code, title = 503, "custody_failed", "Key custody cannot open this secret"
    way_out = "The platform operator must restore the master key that belongs to this database."


class Holder(Protocol):
    @property
    def kind(self) -> str: ...

    def current(self) -> str:
        """Return the version of the master key that wraps new data keys."""
        ...

    def wrap(self, key: bytes, bound_to: str) -> tuple[str, bytes]:
        """Wrap a data key; return the master key's version and the wrapped key."""
        ...

    def unwrap(self, version: str, wrapped: bytes, bound_to: str) -> bytes: ...

    def rotate(self) -> str:
        """Create a new current version; older versions still unwrap."""
        ...

    def retire(self, used: set[str]) -> list[str]:
        """Delete the versions that wrap no data key, and return them."""
        ...
