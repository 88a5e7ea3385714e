"""Registry of long-lived objects that belong to rooms above `http`, looked up by their class.

`api/` creates the objects once per process; a route gets one with `call.platform.services.get(Issuers)`.
"""

from typing import TypeVar

T = TypeVar("T")


class Services:
    def __init__(self, *services: object) -> None:
        self._services = services

    def find(self, kind: type[T]) -> T | None:
        return next((service for service in self._services if isinstance(service, kind)), None)

    def get(self, kind: type[T]) -> T:
        service = self.find(kind)
        if service is None:
            raise LookupError(f"the platform was built without {kind.__name__}")
        return service
