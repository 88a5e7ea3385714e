"""What every holder of the master key can do, and how it says that it cannot."""

from typing import Protocol

from ...kit.problems import Problem


class CustodyUnavailable(Problem):
    status, code, title = 503, "custody_unavailable", "The key custody does not answer"
    retryable = True
    way_out = "Try again in a moment; if it stays, the platform operator looks at `gpuaas-core custody status`."


class CustodyFailed(Problem):
    status, code, title = 503, "custody_failed", "The key custody cannot open this secret"
    way_out = "The platform operator must bring back the master key that belongs to this store."


class Holder(Protocol):
    @property
    def kind(self) -> str: ...

    def current(self) -> str:
        """The version of the master key that wraps from now on."""
        ...

    def wrap(self, key: bytes, bound_to: str) -> tuple[str, bytes]:
        """The version that wrapped, and the wrapped key."""
        ...

    def unwrap(self, version: str, wrapped: bytes, bound_to: str) -> bytes: ...

    def rotate(self) -> str:
        """Makes a new version the current one; older ones still unwrap."""
        ...

    def retire(self, used: set[str]) -> list[str]:
        """Forgets versions that wrap nothing any more; says which."""
        ...
