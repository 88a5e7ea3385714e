"""`gpuaas events [--follow]`: what happened in a project, and what happens now."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import gpuaas_sdk as sdk

from .. import failures
from ..options import Common, Flag
from ..session import session

if TYPE_CHECKING:
    from gpuaas_sdk import Client
    from gpuaas_sdk.errors import GpuaasError
    from gpuaas_sdk.models import EventView

RECENT = 50


def events(
    *,
    follow: Annotated[bool, Flag] = False,
    after: str | None = None,
    limit: int = 200,
    common: Common = Common(),
) -> int | None:
    """What happened in the project: the newest events, or all after a point, or live.

    With -o json each event is one line of JSON. Following survives restarts of the platform and misses nothing.

    Example: gpuaas events
    Example: gpuaas events --follow
    Example: gpuaas events --after 1042 -o json

    Parameters
    ----------
    follow
        Stay, and print what happens from now on (or after --after).
    after
        A sequence number or cursor; 0 for everything that is kept.
    limit
        How many at most, when not following.
    """
    with session(common) as at:
        try:
            if follow:
                start = after if after is not None else _head(at.client, at.project_id)
                for event in sdk.events.follow(at.client, project_id=at.project_id, after=start, on_line=_notice):
                    _print(event, common)
            for event in _listed(at.client, at.project_id, after, limit):
                _print(event, common)
        except KeyboardInterrupt:
            return failures.INTERRUPTED
    return None


def _head(client: Client, project_id: str) -> int:
    return client.list_operations(project_id, limit=1).event_sequence or 0


def _listed(client: Client, project_id: str, after: str | None, limit: int) -> list[EventView]:
    """A project's events are a selection of the tenant's, so the newest ones are found by looking back further."""
    if after is not None:
        return client.list_project_events(project_id, after=after, limit=limit).items
    head, back, found = _head(client, project_id), RECENT, []
    while back <= 100_000:
        start = max(0, head - back)
        found = client.list_project_events(project_id, after=str(start), limit=1000).items
        if len(found) >= min(limit, RECENT) or start == 0:
            break
        back *= 4
    return found[-limit:]


def _print(event: EventView, common: Common) -> None:
    if common.json:
        import msgspec

        print(msgspec.json.encode(event).decode(), flush=True)
        return
    at = datetime.fromisoformat(event.time).astimezone()
    print(f"{event.sequence:>7}  {at:%d %b %H:%M:%S}  {event.type:<32}  {_about(event)}", flush=True)


def _about(event: EventView) -> str:
    said = event.data
    name = said.get("instance_name") or said.get("name") or event.subject
    count = f"{said['step']}/{said['of']} " if said.get("of") else ""
    words = said.get("message") or said.get("state") or ""
    return f"{name}  {count}{words}".rstrip()


def _notice(error: GpuaasError | None) -> None:
    if error:
        print(f"(The line is cut: {error} Coming back by itself.)", file=sys.stderr)
