"""Observes running instances between operations. loop.py runs an Observer if the app passes an `observe` function.

    async def observe(context: ObserveContext) -> Observation | None:
        machine = context.machine(context.instance.members[0].allocation_id)
        result = await machine.run(["systemctl", "is-active", "myapp"])
        return Observation("The service runs.") if result.ok else Observation("The service does not run.", "failed")

    Controller(client, "myapp", "myapp-1", reconcilers, observe=observe, observe_policy=ObservePolicy(every_s=30))

An observation changes nothing and needs no claim: the platform grants access to the hosts of a running instance and
revokes it as soon as an operation begins. An observation equal to the last one leaves no event. Each instance has its
own schedule, and an observation that takes too long is dropped, so that a slow host delays no other instance.
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
from ..client.request import JsonList, JsonObject
from .work import shorten

if TYPE_CHECKING:
    from ..machines.machine import Machine

log = logging.getLogger("gpuaas_sdk.controller")
SETTLED_AFTER_S = 0.7
OPERATIONS_GO_FIRST = ("not_observable", "observation_outdated")


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of an observation. `sentence` is shown as the instance's health; equal states must give equal
    sentences."""

    sentence: str
    status: str = "healthy"
    conditions: JsonList = ()
    members: Sequence[MemberObservation] = ()
    access: JsonObject | None = None
    runtime_version: str | None = None
    adapter_detail: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ObservePolicy:
    """How often to observe, how many instances at once, and how long one observation may take."""

    every_s: float = 30.0
    at_once: int = 8
    within_s: float = 60.0


class ObserveContext:
    """The instance under observation. `memory` is for the app's own data and is kept between observations."""

    def __init__(self, client: AsyncClient, instance: InstanceView) -> None:
        self.client, self.instance = client, instance
        self.memory: dict[str, Any] = {}
        self._machines: dict[str, Machine] = {}

    @property
    def project_id(self) -> str:
        return self.instance.project_id

    def members(self, component_key: str | None = None) -> list[MemberView]:
        """Return the instance's members in order, of all components or of the named one."""
        chosen = [m for m in self.instance.members if component_key in (None, m.component_key)]
        return sorted(chosen, key=lambda m: (m.component_key, m.ordinal))

    def machine(self, allocation_id: str) -> Machine:
        """Return the Machine of an allocation's host. It connects with its first command and is closed after the
        observation. Its certificate is reused by later observations."""
        from ..machines.machine import Machine

        return self._machines.setdefault(allocation_id, Machine(self, allocation_id))

    def update(self, instance: InstanceView) -> None:
        """Replace the instance by a newer view. If another operation has run since, the connections are dropped,
        because their certificates were revoked."""
        if instance.last_operation_id != self.instance.last_operation_id:
            self._machines.clear()
        self.instance = instance

    async def close(self) -> None:
        await asyncio.gather(*(machine.close() for machine in self._machines.values()), return_exceptions=True)

    # --- what a Machine asks for

    def check(self) -> None:
        """Do nothing: an observation has no claim that could be lost, and the host rejects a revoked certificate."""

    def expecting(self, seconds: float) -> AbstractContextManager[None]:
        return nullcontext()

    async def grant(self, allocation_id: str, ssh_public_key: str) -> GrantView:
        return await self.client.grant_observation_access(
            self.project_id,
            self.instance.id,
            allocation_id=allocation_id,
            ssh_public_key=ssh_public_key,
            source_addresses=self.client.source_addresses or None,
        )


Observe = Callable[[ObserveContext], Awaitable[Observation | None]]


@dataclass
class _Watched:
    context: ObserveContext
    due_at: float = 0.0
    running: asyncio.Task[None] | None = field(default=None, repr=False)


class Observer:
    def __init__(
        self, client: AsyncClient, project_id: str, app_slug: str, observe: Observe, policy: ObservePolicy
    ) -> None:
        self._client, self._project_id, self._app_slug = client, project_id, app_slug
        self._observe, self._policy = observe, policy
        self._watched: dict[str, _Watched] = {}
        self._slots = asyncio.Semaphore(policy.at_once)
        self._woken = asyncio.Event()

    def soon(self, instance_id: str, still: Callable[[], bool] = lambda: True) -> None:
        """Schedule an observation of an instance whose operation has ended. It is delayed, because the next operation
        may follow at once; if `still` returns False by then, the observation is not made."""
        asyncio.get_running_loop().call_later(SETTLED_AFTER_S, self._due, instance_id, still)

    def _due(self, instance_id: str, still: Callable[[], bool]) -> None:
        if not still():
            return
        if instance_id in self._watched:
            self._watched[instance_id].due_at = 0.0
        self._woken.set()

    async def run(self) -> None:
        """Observe instances as they become due, until cancelled."""
        try:
            while True:
                self._woken.clear()
                try:
                    await self._begin_due()
                except GpuaasError as error:
                    log.warning("cannot list the instances of %s to observe: %s", self._app_slug, error)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):  # `wait_for` may forget that it was cancelled
                        await self._woken.wait()
        finally:
            await self._end_all()

    async def _begin_due(self) -> None:
        found = {i.id: i async for i in self._client.every(Calls.list_instances, self._project_id) if self._mine(i)}
        for gone in self._watched.keys() - found.keys():
            if self._watched[gone].running is None:
                del self._watched[gone]
        for instance_id, instance in found.items():
            watched = self._watched.setdefault(instance_id, _Watched(ObserveContext(self._client, instance)))
            if watched.running is None and watched.due_at <= now():
                watched.context.update(instance)
                watched.due_at = now() + self._policy.every_s
                watched.running = asyncio.create_task(self._run_observe(watched), name=f"observe {instance.name}")

    def _mine(self, instance: InstanceView) -> bool:
        operated = self._client.account_id and instance.operator_id not in (None, self._client.account_id)
        return instance.app_slug == self._app_slug and instance.state == "running" and not operated

    def _pause(self) -> float:
        """Return the seconds until the next observation is due: at most one interval, since new instances may appear,
        and at least a tenth of one."""
        waiting = [one.due_at for one in self._watched.values() if one.running is None]
        return max(self._policy.every_s / 10, min([*waiting, now() + self._policy.every_s]) - now())

    async def _run_observe(self, watched: _Watched) -> None:
        context = watched.context
        try:
            async with self._slots:
                async with asyncio.timeout(self._policy.within_s):
                    observation = await self._observe(context)
            if observation is not None:
                await self._report(context, observation)
        except TimeoutError:
            log.warning(
                "observing %s took more than %g s and was dropped", context.instance.name, self._policy.within_s
            )
        except ApiError as error:
            level = logging.DEBUG if error.code in OPERATIONS_GO_FIRST else logging.WARNING
            log.log(level, "no observation of %s: %s", context.instance.name, error)
        except GpuaasError as error:
            log.warning("no observation of %s: %s", context.instance.name, error)
        except Exception:
            log.exception("the observe function raised for %s", context.instance.name)
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await context.close()
            watched.running = None
            if watched.due_at <= now():  # an operation ended meanwhile
                self._woken.set()

    async def _report(self, context: ObserveContext, observation: Observation) -> None:
        instance = context.instance
        change = await self._client.observe_instance(
            instance.project_id,
            instance.id,
            last_operation_id=instance.last_operation_id or "",
            observed_generation=instance.generation,
            health={"status": observation.status, "sentence": shorten(observation.sentence)},
            conditions=list(observation.conditions),
            members=list(observation.members),
            access=observation.access,
            runtime_version=observation.runtime_version,
            adapter_detail=observation.adapter_detail,
        )
        if change is not None:
            log.info("%s is %s: %s", instance.name, observation.status, observation.sentence)

    async def _end_all(self) -> None:
        running = [one.running for one in self._watched.values() if one.running is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
