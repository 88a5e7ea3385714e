"""The HTTP application: the rooms' routers, one error format, one correlation id, a start-up check of every route."""

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI
from fastapi.routing import RouteContext, iter_route_contexts

from .. import __version__
from ..artifacts import artifact_routes, content_routes, source_routes
from ..artifacts.fetch import Reader
from ..artifacts.store import Store
from ..audit import routes as audit_routes
from ..audit.checkpoints import PURPOSE, Checkpoints
from ..authz.permissions import PERMISSIONS
from ..background.artifact_cleanup import sweeping
from ..background.audit_checkpoints import anchoring
from ..background.housekeeping import cleanup, housekeeping
from ..background.trust_maintenance import trust_keeping
from ..capacity import agent_routes, authority_routes, offer_routes
from ..capacity import routes as capacity
from ..capacity.readmission import suspect
from ..capacity.reads import node_scope
from ..catalog import routes as catalog
from ..custody.vault import Vault
from ..events import routes as event_routes
from ..http import problems
from ..http.bounds import Bounded, Wider
from ..http.call import PUBLIC, Platform
from ..http.console import LOOPBACK, Renewals
from ..http.correlate import Correlate
from ..http.request_log import Watcher
from ..iam import break_glass_routes, delegation_routes
from ..iam import routes as iam
from ..identity import oidc_routes, service_account_routes, user_routes
from ..identity import routes as identity
from ..identity.oidc_issuers import Issuers
from ..identity.sessions import authenticate, renew_session
from ..instances import (
    access_routes,
    allocation_routes,
    credential_routes,
    entitlement_routes,
    grant_routes,
    member_routes,
    observation_routes,
    secret_routes,
    ssh_session_routes,
    task_routes,
)
from ..instances import routes as instances
from ..instances.targets import INSTANCE_TARGET, MEMBER_TARGET
from ..kit.clock import Clock, system_clock
from ..kit.db import Database
from ..kit.pg_notify import share_wakeups
from ..kit.wakeups import Wakeups
from ..node_tasks import routes as tasks
from ..operations import targets
from ..operations.controller_routes import controller_router
from ..operations.places import PLACES
from ..operations.reads import operation_scope
from ..operations.routes import batch_router, people_router
from ..operations.wire import models_of
from ..policy import routes as policy
from ..tenancy import routes as tenancy
from ..tenancy.reads import project_scope, tenant_scope
from ..triage import otlp_routes
from ..triage import routes as triage
from ..triage.writer import RequestLines
from . import about
from .owners import owner_of

Background = Callable[[], AbstractAsyncContextManager[None]]
# Routes are matched in order, so the most frequent ones come first.
ROUTERS = [
    grant_routes.router,
    observation_routes.router,
    access_routes.router,
    instances.router,
    member_routes.router,
    about.router,
    identity.router,
    oidc_routes.router,
    tenancy.router,
    user_routes.router,
    service_account_routes.router,
    iam.router,
    delegation_routes.router,
    break_glass_routes.router,
    policy.router,
    catalog.router,
    capacity.router,
    offer_routes.router,
    authority_routes.router,
    source_routes.router,
    artifact_routes.router,
    content_routes.router,
    agent_routes.router,
    allocation_routes.router,
    allocation_routes.wide,
    entitlement_routes.router,
    tasks.router,
    tasks.beside,
    task_routes.router,
    ssh_session_routes.router,
    secret_routes.router,
    credential_routes.router,
    event_routes.router,
    audit_routes.router,
    triage.router,
    otlp_routes.router,
]
LOOPS = [housekeeping, cleanup, anchoring, trust_keeping, sweeping]
for _target in (INSTANCE_TARGET, MEMBER_TARGET):  # what operations can work on
    targets.register(_target)


def operation_routers() -> list[APIRouter]:
    """The routes of operations have the fields of all targets, so they are made when these are known."""
    models = models_of(targets.registered())
    routers = [*(controller_router(place, models) for place in PLACES), batch_router(models)]
    return routers + [people_router(place, models, reads_with="apps.instance.read") for place in PLACES]


def build_platform(
    db: Database,
    vault: Vault,
    clock: Clock = system_clock,
    *,
    checkpoints: Path | None = None,
    public_url: str = "",
    artifacts: Store | None = None,
) -> Platform:
    scopes = {"project": project_scope, "tenant": tenant_scope, "node": node_scope, "operation": operation_scope}
    anchors = Checkpoints(checkpoints, vault.public_key(PURPOSE)) if checkpoints else None
    loopback = urlsplit(public_url).scheme == "http" and urlsplit(public_url).hostname in LOOPBACK
    return Platform(
        db,
        vault,
        Wakeups(),
        clock,
        authenticate,
        scopes,
        anchors,
        Renewals(renew_session),
        Issuers(clock, loopback=loopback),
        Reader(artifacts) if artifacts else None,
        suspect,
        public_url,
        owner_of,
    )


def build_app(platform: Platform, *, loops: bool = True, beside: Sequence[Background] = ()) -> FastAPI:
    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as running:
            if loops:
                await running.enter_async_context(share_wakeups(platform.db, platform.wakeups))
            for loop in LOOPS if loops else []:
                await running.enter_async_context(loop(platform))
            for background in beside:
                await running.enter_async_context(background())
            yield

    app = FastAPI(
        title="GPUaaS",
        version=__version__,
        summary="Tenants and projects allocate GPU nodes and run apps on them.",
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would send tokens to the host and scheme named in the request
    )
    app.state.platform = platform
    for router in [*operation_routers(), *ROUTERS]:
        app.router.routes.extend(router.routes)  # flat, because included routers are matched more slowly
    problems.install(app)
    check_routes(app)
    return app


def build_asgi(platform: Platform, watchers: Sequence[Watcher] = (), beside: Sequence[Background] = ()) -> Any:
    lines = RequestLines(platform.db, platform.clock)
    return guarded(build_app(platform, beside=[lines.running, *beside]), [lines, *watchers])


def guarded(app: FastAPI, watchers: Sequence[Watcher] = ()) -> Any:
    """The middleware before every route: the correlation id, and the limit on bodies."""
    platform: Platform = app.state.platform
    wider = [Wider("PUT", content_routes.PUSHES, lambda: platform.artifacts.store.bounds.largest)]
    return Correlate(Bounded(app, wider), watchers, platform.clock)


def check_routes(app: FastAPI) -> None:
    """Every route declares exactly one known permission key, or the server does not start."""
    for route in api_routes(app):
        key = (getattr(route, "openapi_extra", None) or {}).get("x-permission")
        if key != PUBLIC and key not in PERMISSIONS:
            raise RuntimeError(f"{sorted(route.methods or ())} {route.path} declares no known permission key: {key!r}")


def api_routes(app: FastAPI) -> list[RouteContext]:
    """All routes: `app.routes` alone shows each included router as one entry."""
    return list(iter_route_contexts(app.routes))
