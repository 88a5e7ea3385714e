"""The HTTP application: all routers, error handlers and middleware, and a start-up check that every route declares a
permission key."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI
from fastapi.routing import RouteContext, iter_route_contexts
from starlette.types import ASGIApp

from .. import __version__
from ..artifacts import artifact_routes, content_routes, source_routes
from ..artifacts.fetch import Reader
from ..artifacts.store import Store
from ..audit import routes as audit_routes
from ..audit.checkpoints import PURPOSE, Checkpoints
from ..authz.permissions import PERMISSIONS
from ..authz.rules import with_rules
from ..background.housekeeping import cleanup, housekeeping
from ..background.loops import artifact_cleanup, audit_checkpoints
from ..background.node_contacts import noting_contacts
from ..background.trust_maintenance import trust_keeping
from ..capacity import allocation_routes, allocation_service, holds, offers
from ..capacity import routes as capacity
from ..capacity.reads import node_with_rules
from ..catalog import entitlement_routes
from ..catalog import routes as catalog
from ..credentials import routes as credential_routes
from ..credentials import secret_routes
from ..enrolment import routes as enrolment
from ..enrolment.readmission import suspect
from ..enrolment.service import expected_node
from ..events import routes as event_routes
from ..http import problems
from ..http.bounds import Bounded, Wider
from ..http.call import PUBLIC, Platform
from ..http.console import LOOPBACK, Renewals
from ..http.correlate import Correlate
from ..http.request_log import Watcher
from ..http.routing import Direct, Dispatch
from ..http.services import Services
from ..iam import break_glass_routes, delegation_routes
from ..iam import routes as iam
from ..identity import routes as identity
from ..identity import service_account_routes, user_routes
from ..identity.sessions import authenticate, lend, renew_session
from ..instances import (
    member_routes,
)
from ..instances import routes as instances
from ..instances.access import ObservationPurpose, PersonPurpose
from ..instances.reads import running_names, shown_holders
from ..instances.schemas import AccessGrantView
from ..instances.states import OF_INSTANCE
from ..instances.targets import INSTANCE_SUBJECTS, INSTANCE_TARGET, MEMBER_TARGET
from ..kit.clock import DEFAULTS, Clock, Durations, system_clock
from ..kit.db import Database
from ..kit.json_types import Json, is_object
from ..kit.pg_notify import share_wakeups
from ..kit.vault import Vault
from ..kit.wakeups import Wakeups
from ..machine_access import authority_routes, purposes, revocation
from ..machine_access.grant_routes import grant_router
from ..node_polls import routes as node_polls
from ..node_tasks import agent_routes, wipe
from ..node_tasks import controller_routes as controller_task_routes
from ..node_tasks import routes as tasks
from ..node_tasks import service as task_service
from ..oidc import routes as oidc
from ..oidc.issuers import Issuers
from ..operations import queue, targets
from ..operations.access import OperationPurpose
from ..operations.controller_routes import access_router, controller_router
from ..operations.places import PLACES
from ..operations.reads import operation_scope
from ..operations.routes import batch_router, people_router
from ..operations.wire import models_of
from ..policy import routes as policy
from ..teardown import routes as teardown_routes
from ..tenancy import routes as tenancy
from ..tenancy.reads import project_with_rules, tenant_with_rules
from ..triage import otlp_routes
from ..triage import routes as triage
from ..triage.writer import RequestLines
from . import about
from .owners import owner_of

Background = Callable[[], AbstractAsyncContextManager[None]]
ROUTERS = [
    node_polls.router,
    access_router,
    instances.observing,
    grant_router(AccessGrantView),
    instances.router,
    member_routes.router,
    teardown_routes.router,
    about.router,
    identity.router,
    oidc.router,
    tenancy.router,
    user_routes.router,
    service_account_routes.router,
    iam.router,
    delegation_routes.router,
    break_glass_routes.router,
    policy.router,
    catalog.router,
    enrolment.router,
    capacity.router,
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
    controller_task_routes.router,
    member_routes.sessions,
    secret_routes.router,
    credential_routes.router,
    event_routes.router,
    audit_routes.router,
    triage.router,
    otlp_routes.router,
]
LOOPS = [noting_contacts, housekeeping, cleanup, audit_checkpoints, trust_keeping, artifact_cleanup]
for _target in (INSTANCE_TARGET, MEMBER_TARGET):  # what operations can work on
    targets.register(_target)
targets.register_subjects(INSTANCE_SUBJECTS)
queue.register_fence(task_service.fence)
entitlement_routes.register_running(running_names)
for _purpose in (OperationPurpose(), ObservationPurpose(), PersonPurpose()):  # why access is given
    purposes.register(_purpose)
for _step in (revocation.on_release, wipe.on_release):  # what happens when an allocation is released
    allocation_service.register_release_step(_step)
offers.register(expected_node)  # what will use a region, SKU or pool
holds.register(OF_INSTANCE, shown_holders)  # what can hold an allocation


def operation_routers() -> list[APIRouter]:
    """Build the routes of operations. Called after all targets are registered, because the models of the routes have
    the fields of all targets."""
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
    durations: Durations = DEFAULTS,
) -> Platform:
    scopes = {
        "project": project_with_rules,
        "tenant": tenant_with_rules,
        "node": node_with_rules,
        "operation": with_rules(operation_scope),
    }
    anchors = Checkpoints(checkpoints, vault.public_key(PURPOSE)) if checkpoints else None
    loopback = urlsplit(public_url).scheme == "http" and urlsplit(public_url).hostname in LOOPBACK
    return Platform(
        db,
        vault,
        Wakeups(),
        clock,
        authenticate,
        lend,
        scopes,
        anchors,
        Renewals(renew_session),
        Services(Issuers(clock, loopback=loopback), *([Reader(artifacts)] if artifacts else [])),
        suspect,
        public_url,
        owner_of,
        durations=durations,
    )


def build_app(platform: Platform, *, loops: bool = True, beside: Sequence[Background] = ()) -> FastAPI:
    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
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
        app.router.routes.extend(router.routes)
    app.state.dispatch = app.router.middleware_stack = Dispatch(app.router)
    problems.install(app)
    check_routes(app)
    return app


def build_asgi(platform: Platform, watchers: Sequence[Watcher] = (), beside: Sequence[Background] = ()) -> ASGIApp:
    lines = RequestLines(platform.db, platform.clock)
    return guarded(build_app(platform, beside=[lines.running, *beside]), [lines, *watchers])


def guarded(app: FastAPI, watchers: Sequence[Watcher] = ()) -> ASGIApp:
    """Wrap the application in the middleware that runs before every route: correlation id and body limit."""
    platform: Platform = app.state.platform
    wider = [Wider("PUT", content_routes.PUSHES, lambda: platform.services.get(Reader).store.bounds.largest)]
    direct = Direct(app, app.state.dispatch, problems.response_to)
    return Correlate(Bounded(direct, wider), watchers, platform.clock)


def check_routes(app: FastAPI) -> None:
    """Raise RuntimeError, so that the server does not start, if a route does not declare a known permission key."""
    for route in api_routes(app):
        key = marks_of(route).get("x-permission")
        if key != PUBLIC and key not in PERMISSIONS:
            raise RuntimeError(f"{sorted(route.methods or ())} {route.path} declares no known permission key: {key!r}")


def marks_of(route: RouteContext) -> Json:
    """Return the permission key and scope that the route declared with `needs`, or an empty object if it declared
    none."""
    declared: object = getattr(route, "openapi_extra", None)
    return declared if is_object(declared) else {}


def api_routes(app: FastAPI) -> list[RouteContext]:
    """Return all routes of the application, including those of included routers, which `app.routes` does not list."""
    return list(iter_route_contexts(app.routes))
