"""The interface that every holder of the master key implements, and the errors of holders."""

from typing import Protocol

from ...kit.problems import Problem


class CustodyUnavailable(Problem):
    status, code, title = 503, "custody_unavailable", "Key custody not reachable"
    retryable = True
    way_out = "Retry in a moment. If retries fail, the platform operator should check `gpuaas-core custody status`."


class CustodyFailed(Problem):
    status, code, title = 503, "custody_failed", "Key custody cannot decrypt this secret"
    way_out = "The platform operator must restore the master key that belongs to this database."


class Holder(Protocol):
    @property
    def kind(self) -> str: ...

    def current(self) -> str:
        """Return the version of the master key that wraps new data keys."""
        ...

    def wrap(self, key: bytes, bound_to: str) -> tuple[str, bytes]:
        """Encrypt a data key; return the master key's version and the wrapped key.
        `unwrap` needs the same `bound_to`."""
        ...

    def unwrap(self, version: str, wrapped: bytes, bound_to: str) -> bytes: ...

    def rotate(self) -> str:
        """Create a new current version of the master key and return it. Older versions can still unwrap."""
        ...

    def retire(self, used: set[str]) -> list[str]:
        """Delete the versions of the master key that are neither in `used` nor current, and return them."""
        ...
