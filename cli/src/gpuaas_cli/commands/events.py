"""`gpuaas events [--follow]`: events of a project or tenant, past and live."""

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
    """List the newest events of the project or a tenant; with --follow, print new events live.

    With -o json each event is one line of JSON. --follow reconnects after an interruption without losing an event.

    Example: gpuaas events
    Example: gpuaas events --follow
    Example: gpuaas events --after 1042 -o json
    Example: gpuaas events --tenant acme

    Parameters
    ----------
    follow
        Print new events until Ctrl-C, starting now or at --after.
    after
        List events after this sequence number or cursor; 0 for all stored events.
    limit
        Maximum number of events, without --follow.
    tenant
        Name or id of a tenant: list its events and the events of its projects (tenant administrators).
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
    """Return the newest events. A project's events are a subset of the tenant's, so the window grows until it contains
    enough."""
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
    data = event.data
    name = data.get("instance_name") or data.get("name") or event.subject
    count = f"{data['step']}/{data['of']} " if data.get("of") else ""
    words = data.get("message") or data.get("state") or ""
    return f"{name}  {count}{words}".rstrip()


def _notice(error: GpuaasError | None) -> None:
    if error:
        print(f"(Connection lost: {error} Reconnecting.)", file=sys.stderr)
