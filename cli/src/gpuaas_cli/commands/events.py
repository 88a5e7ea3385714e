"""`gpuaas events [--follow]`: what happened in a project, and what happens now."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import gpuaas_sdk as sdk

from .. import failures, show
from ..options import Common, Flag
from ..session import session

if TYPE_CHECKING:
    from gpuaas_sdk import Client
    from gpuaas_sdk.client.errors import GpuaasError
    from gpuaas_sdk.client.models import EventView

RECENT = 50


def events(
    *,
    follow: Annotated[bool, Flag] = False,
    after: str | None = None,
    limit: int = 200,
    tenant: str | None = None,
    common: Common = Common(),
) -> int | None:
    """What happened in the project, or in a whole tenant: the newest events, or all after a point, or live.

    With -o json each event is one line of JSON. Following survives restarts of the platform and misses nothing.

    Example: gpuaas events
    Example: gpuaas events --follow
    Example: gpuaas events --after 1042 -o json
    Example: gpuaas events --tenant acme

    Parameters
    ----------
    follow
        Stay, and print what happens from now on (or after --after).
    after
        A sequence number or cursor; 0 for everything that is kept.
    limit
        How many at most, when not following.
    tenant
        Name or id of a tenant: everything in it, its projects included (tenant administrators).
    """
    with session(common) as at:
        where = _Tenant(at.client, at.tenant_id(tenant)) if tenant else _Project(at.client, at.project_id)
        try:
            if follow:
                start = after if after is not None else where.head()
                _follow(at.client, where, start, common)
            for event in _listed(where, after, limit):
                _print(event, common)
        except KeyboardInterrupt:
            return failures.INTERRUPTED
    return None


def _follow(client: Client, where: _Project | _Tenant, start: int | str, common: Common) -> None:
    which: dict[str, Any] = {"project_id": where.project_id, "tenant_id": where.tenant_id}
    for event in sdk.events.follow(client, **which, after=start, on_line=_notice):
        _print(event, common)


class _Project:
    def __init__(self, client: Client, project_id: str) -> None:
        self._client, self._id = client, project_id
        self.project_id, self.tenant_id = project_id, None

    def head(self) -> int:
        return self._client.list_operations(self._id, limit=1).event_sequence or 0

    def after(self, point: str, limit: int) -> list[EventView]:
        return self._client.list_project_events(self._id, after=point, limit=limit).items


class _Tenant:
    def __init__(self, client: Client, tenant_id: str) -> None:
        self._client, self._id = client, tenant_id
        self.project_id, self.tenant_id = None, tenant_id

    def head(self) -> int:
        return self._client.list_tenant_events(self._id, limit=1).head

    def after(self, point: str, limit: int) -> list[EventView]:
        return self._client.list_tenant_events(self._id, after=point, limit=limit).items


def _listed(where: _Project | _Tenant, after: str | None, limit: int) -> list[EventView]:
    """A project's events are a selection of the tenant's, so the newest ones are found by looking back further."""
    if after is not None:
        return where.after(after, limit)
    head, back, found = where.head(), RECENT, []
    while back <= 100_000:
        start = max(0, head - back)
        found = where.after(str(start), 1000)
        if len(found) >= min(limit, RECENT) or start == 0:
            break
        back *= 4
    return found[-limit:]


def _print(event: EventView, common: Common) -> None:
    if common.json:
        return show.one_of_many(event)
    at = datetime.fromisoformat(event.time).astimezone()
    print(f"{event.sequence:>7}  {at:%d %b %H:%M:%S}  {event.type:<32}  {_about(event)}", flush=True)
    return None


def _about(event: EventView) -> str:
    said = event.data
    name = said.get("instance_name") or said.get("name") or event.subject
    count = f"{said['step']}/{said['of']} " if said.get("of") else ""
    words = said.get("message") or said.get("state") or ""
    return f"{name}  {count}{words}".rstrip()


def _notice(error: GpuaasError | None) -> None:
    if error:
        print(f"(The line is cut: {error} Coming back by itself.)", file=sys.stderr)
