"""A signed-in client, and the lookup of names. Every command that calls the platform starts with `session`.

Commands accept names (`train`, `node-a`) and ids (`inst_…`, `alloc_…`); an id needs no lookup.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import gpuaas_sdk as sdk

from . import failures
from .config import Config
from .context_flags import there
from .failures import CliError

if TYPE_CHECKING:
    from gpuaas_sdk import Client
    from gpuaas_sdk.client.models import AllocationView, InstanceView, OperationView, ProjectView

    from .options import Common

T = TypeVar("T")
MOST_NAMED = 20  # projects that an error lists


class Session:
    def __init__(self, client: Client, project: str, api: str = "") -> None:
        self.client, self._wanted, self.api = client, project, api
        self._project: ProjectView | None = None

    @property
    def project(self) -> ProjectView:
        """Return the requested project, or the only visible project if none is requested. Raises CliError if there is
        no such project, or several are visible."""
        if self._project is None:
            self._project = self._choose_project()
        return self._project

    @property
    def project_id(self) -> str:
        return self._wanted if self._wanted.startswith("prj_") else self.project.id

    def _choose_project(self) -> ProjectView:
        visible = list(self.client.every(sdk.Calls.list_projects, limit=200))
        if self._wanted:
            return pick("project", self._wanted, visible, "gpuaas whoami")
        if len(visible) == 1:
            return visible[0]
        names = ", ".join(sorted(p.slug for p in visible)[:MOST_NAMED]) or "none"
        if len(visible) > MOST_NAMED:
            names += f" and {len(visible) - MOST_NAMED} more (gpuaas project list)"
        raise CliError("No project was named.", f"Add --project with one of: {names}.", failures.USAGE)

    def instance(self, name_or_id: str, *, deleted: bool = False) -> InstanceView:
        if name_or_id.startswith("inst_"):
            return self.client.get_instance(self.project_id, name_or_id)
        found = list(self.client.every(sdk.Calls.list_instances, self.project_id, deleted=deleted or None))
        return pick("instance", name_or_id, sorted(found, key=lambda i: i.state == "deleted"), "gpuaas instance list")

    def operation(self, id_or_instance: str) -> OperationView:
        """Return the operation with this id, or the newest operation of the named instance and its members. Raises
        CliError if the instance has no operations."""
        if id_or_instance.startswith("op_"):
            return self.client.get_operation(self.project_id, id_or_instance)
        instance = self.instance(id_or_instance, deleted=True)
        newest = self.newest_operation(instance)
        if newest is None:
            way_out = f"Operations are kept for 30 days. See all of them: {there('gpuaas operation list')}"
            raise CliError(f"{instance.name} has no operations.", way_out, failures.NOT_FOUND)
        return newest

    def newest_operation(self, instance: InstanceView, *, live: bool = False) -> OperationView | None:
        """Return the newest operation of an instance, with `live` only if it has not ended; None if there is no such
        operation."""
        wanted = {"instance_id": instance.id, "newest_first": True, "limit": 1}
        page = self.client.list_operations(self.project_id, **wanted, history=False if live else None)
        return page.items[0] if page.items else None

    def allocation_id(self, name_or_id: str, known: list[AllocationView]) -> str:
        """Return the id of the allocation that has this id, this name or a node with this name. Raises CliError if
        there is none."""
        if name_or_id.startswith("alloc_"):
            return name_or_id
        return pick("allocation", name_or_id, known, "gpuaas allocation list").id

    def allocations(self) -> list[AllocationView]:
        return [a for a in self.client.every(sdk.Calls.list_allocations, self.project_id) if a.state != "released"]

    def tenant_id(self, wanted: str | None) -> str:
        from gpuaas_sdk.client.errors import Denied

        if wanted and wanted.startswith("ten_"):
            return wanted
        tenants = self.client.whoami().tenants
        if wanted:
            if not any(wanted in (one.slug, one.name) for one in tenants):
                with suppress(Denied):  # platform administrators belong to no tenant and may list all
                    tenants = list(self.client.every(sdk.Calls.list_tenants))
            return pick("tenant", wanted, tenants, "gpuaas tenant list").id
        if len(tenants) == 1:
            return tenants[0].id
        names = ", ".join(sorted(t.slug for t in tenants)) or "none"
        raise CliError("No tenant was named.", f"Add --tenant with one of: {names}.", failures.USAGE)


def pick(noun: str, wanted: str, among: list[T], listing: str) -> T:
    """Return the item whose id, slug, name or node name (in this order) is `wanted`. Raises CliError if no item
    matches, or several; of several instances the first is returned."""
    for attribute in ("id", "slug", "name", "node_name"):
        found = [one for one in among if getattr(one, attribute, None) == wanted]
        if len(found) > 1 and noun != "instance":
            ids = ", ".join(str(getattr(one, "id", "?")) for one in found)
            raise CliError(f"There are {len(found)} {noun}s called {wanted}.", f"Use the id: {ids}.", failures.USAGE)
        if found:
            return found[0]
    called = wanted or "'' (the name is empty)"
    command = listing if noun in ("project", "tenant") else there(listing)  # the flag itself may be mistyped
    raise CliError(f"There is no {noun} called {called}.", f"See: {command}", failures.NOT_FOUND)


@contextmanager
def session(common: Common) -> Iterator[Session]:
    config = Config.effective(common.api, common.context)
    if not config.api or not config.token:
        where = f" at {config.api}" if config.api else ""
        way_out = f"Sign in: gpuaas login --api {config.api or 'https://…'} --email you@…"
        raise CliError(f"You are not signed in{where}.", way_out, failures.SIGN_IN)
    key = getattr(common, "idempotency_key", None)
    with connect(config.api, config.token, key) as client:
        yield Session(client, common.project or config.project, config.api)


@contextmanager
def connect(api: str, token: str | None = None, idempotency_key: str | None = None) -> Iterator[Client]:
    try:
        client = sdk.Client(api, sdk.Bearer(token), idempotency_key=idempotency_key)
    except ValueError as error:
        raise CliError(str(error), "Give an address like https://gpu.example.", failures.USAGE) from error
    with client:
        yield client
