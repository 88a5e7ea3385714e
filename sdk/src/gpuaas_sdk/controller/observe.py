"""Looking at running instances between operations. controller.py runs an Observer beside its claims if it is given one.

    async def look(at: Look) -> Seen | None:
        result = await at.machine(at.instance.members[0].allocation_id).run(["systemctl", "is-active", "myapp"])
        return Seen("It answers.") if result.ok else Seen("It does not answer.", "failed")

    Controller(client, "myapp", "myapp-1", reconcilers, observe=look, pace_of_looks=Looks(every_s=30))

A look changes nothing and holds no claim: the platform lets it onto the machines of a running instance, and takes that
back as soon as an operation begins. Equal looks leave no trace. Each instance is looked at in its own time, and a look
that takes too long is dropped, so that a slow host delays nobody but itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..client.backoff import now
from ..client.calls import Calls
from ..client.clients import AsyncClient
from ..client.errors import ApiError, GpuaasError
from ..client.models import GrantView, InstanceView, MemberObservation, MemberView
from .work import shorten

if TYPE_CHECKING:
    from ..machines.machine import Machine

log = logging.getLogger("gpuaas_sdk.controller")
SETTLED_AFTER_S = 0.7
OPERATIONS_GO_FIRST = ("not_observable", "observation_outdated")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look found. `sentence` is what people read as the instance's health; the same look, the same words."""

    sentence: str
    status: str = "healthy"
    conditions: Sequence[Any] = ()
    members: Sequence[MemberObservation] = ()
    access: dict[str, Any] | None = None
    runtime_version: str | None = None
    adapter_detail: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Looks:
    """How often, how many instances at once, and how long one look may take."""

    every_s: float = 30.0
    at_once: int = 8
    within_s: float = 60.0


class Look:
    """One instance under observation. `memory` is the app's own, from look to look, lost with the process."""

    def __init__(self, client: AsyncClient, instance: InstanceView) -> None:
        self.client, self.instance = client, instance
        self.memory: dict[str, Any] = {}
        self._machines: dict[str, Machine] = {}

    @property
    def project_id(self) -> str:
        return self.instance.project_id

    def members(self, component_key: str | None = None) -> list[MemberView]:
        """The instance's members, in order; of one component if it is named."""
        chosen = [m for m in self.instance.members if component_key in (None, m.component_key)]
        return sorted(chosen, key=lambda m: (m.component_key, m.ordinal))

    def machine(self, allocation_id: str) -> Machine:
        """Connects with its first command and is closed after the look; its certificate serves the next ones too."""
        from ..machines.machine import Machine

        return self._machines.setdefault(allocation_id, Machine(self, allocation_id))

    def renewed(self, instance: InstanceView) -> None:
        """The certificates of before a newer operation were taken back."""
        if instance.last_operation_id != self.instance.last_operation_id:
            self._machines.clear()
        self.instance = instance

    async def close(self) -> None:
        await asyncio.gather(*(machine.close() for machine in self._machines.values()), return_exceptions=True)

    # --- what a Machine asks for

    def check(self) -> None:
        """There is no claim to lose: the host itself refuses a certificate that was taken back."""

    def expecting(self, seconds: float) -> AbstractContextManager[None]:
        return nullcontext()

    async def grant(self, allocation_id: str, ssh_public_key: str) -> GrantView:
        asked: dict[str, Any] = {"allocation_id": allocation_id, "ssh_public_key": ssh_public_key}
        asked |= {"source_addresses": self.client.source_addresses or None}
        return await self.client.grant_observation_access(self.project_id, self.instance.id, **asked)


Observe = Callable[[Look], Awaitable[Seen | None]]


@dataclass
class _Watched:
    look: Look
    due_at: float = 0.0
    looking: asyncio.Task[None] | None = field(default=None, repr=False)


class Observer:
    def __init__(self, client: AsyncClient, project_id: str, app_slug: str, observe: Observe, pace: Looks) -> None:
        self._client, self._project_id, self._app_slug = client, project_id, app_slug
        self._observe, self._pace = observe, pace
        self._watched: dict[str, _Watched] = {}
        self._slots = asyncio.Semaphore(pace.at_once)
        self._woken = asyncio.Event()

    def soon(self, instance_id: str, still: Callable[[], bool] = lambda: True) -> None:
        """The last operation there has ended: what it left is news. Not at once: the next one may come right behind it,
        and would share its hosts with a look that says what is old before it is told. Then it is not `still` wanted."""
        asyncio.get_running_loop().call_later(SETTLED_AFTER_S, self._due, instance_id, still)

    def _due(self, instance_id: str, still: Callable[[], bool]) -> None:
        if not still():
            return
        if instance_id in self._watched:
            self._watched[instance_id].due_at = 0.0
        self._woken.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                self._woken.clear()
                try:
                    await self._begin_due()
                except GpuaasError as error:
                    log.warning("instances of %s could not be listed for a look: %s", self._app_slug, error)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):  # `wait_for` may forget that it was cancelled
                        await self._woken.wait()
        finally:
            await self._end_all()

    async def _begin_due(self) -> None:
        found = {i.id: i async for i in self._client.every(Calls.list_instances, self._project_id) if self._mine(i)}
        for gone in self._watched.keys() - found.keys():
            if self._watched[gone].looking is None:
                del self._watched[gone]
        for instance_id, instance in found.items():
            watched = self._watched.setdefault(instance_id, _Watched(Look(self._client, instance)))
            if watched.looking is None and watched.due_at <= now():
                watched.look.renewed(instance)
                watched.due_at = now() + self._pace.every_s
                watched.looking = asyncio.create_task(self._look(watched), name=f"look at {instance.name}")

    def _mine(self, instance: InstanceView) -> bool:
        operated = self._client.account_id and instance.operator_id not in (None, self._client.account_id)
        return instance.app_slug == self._app_slug and instance.state == "running" and not operated

    def _pause(self) -> float:
        """At most one interval: instances come and go. Never less than a tenth of one, whatever is due."""
        waiting = [one.due_at for one in self._watched.values() if one.looking is None]
        return max(self._pace.every_s / 10, min([*waiting, now() + self._pace.every_s]) - now())

    async def _look(self, watched: _Watched) -> None:
        look = watched.look
        try:
            async with self._slots:
                async with asyncio.timeout(self._pace.within_s):
                    seen = await self._observe(look)
            if seen is not None:
                await self._tell(look, seen)
        except TimeoutError:
            log.warning("the look at %s took more than %g s and was dropped", look.instance.name, self._pace.within_s)
        except ApiError as error:
            level = logging.DEBUG if error.code in OPERATIONS_GO_FIRST else logging.WARNING
            log.log(level, "the look at %s says nothing: %s", look.instance.name, error)
        except GpuaasError as error:
            log.warning("the look at %s says nothing: %s", look.instance.name, error)
        except Exception:
            log.exception("the observe function raised at %s", look.instance.name)
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await look.close()
            watched.looking = None
            if watched.due_at <= now():  # an operation ended meanwhile
                self._woken.set()

    async def _tell(self, look: Look, seen: Seen) -> None:
        instance = look.instance
        said: dict[str, Any] = {
            "last_operation_id": instance.last_operation_id,
            "observed_generation": instance.generation,
            "health": {"status": seen.status, "sentence": shorten(seen.sentence)},
            "conditions": list(seen.conditions),
            "members": list(seen.members),
            "access": seen.access,
            "runtime_version": seen.runtime_version,
            "adapter_detail": seen.adapter_detail,
        }
        news = await self._client.observe_instance(instance.project_id, instance.id, **said)
        if news is not None:
            log.info("%s is %s: %s", instance.name, seen.status, seen.sentence)

    async def _end_all(self) -> None:
        looking = [one.looking for one in self._watched.values() if one.looking is not None]
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
