"""HTTP routes for artifact sources of the platform and of a tenant. A tenant sees the platform's sources as well."""

import contextlib

from fastapi import APIRouter, Response

from ..http.call import Call, Caller, Returns, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import schemas, sources
from .addresses import checked
from .errors import SourceAway
from .fetch import Reader
from .http_source import resolved
from .tables import artifact_sources

router = APIRouter(prefix="/v1", tags=["artifacts"])
HERE, TENANTS = "/artifact-sources", "/tenants/{tenant_id}/artifact-sources"
VIEW: Returns = {"response_model": schemas.SourceView}


@router.post(HERE, status_code=201, **VIEW, **needs("artifacts.platform_source.create"))
async def create_platform_artifact_source(call: Caller, body: schemas.CreatePlatformSource) -> Response:
    """Create an artifact source of the platform.
    Its artifacts are available to every tenant whose policies allow the source."""
    return await _create(call, body, f"/v1{HERE}")


@router.get(HERE, **needs("artifacts.platform_source.read"))
async def list_platform_artifact_sources(
    call: Caller, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.SourceView]:
    return await _list(call, limit, cursor)


@router.get(HERE + "/{source_id}", **needs("artifacts.platform_source.read"))
async def get_platform_artifact_source(call: Caller, source_id: str) -> schemas.SourceView:
    return await _get(call, source_id)


@router.post(HERE + "/{source_id}/enable", **VIEW, **needs("artifacts.platform_source.update"))
async def enable_platform_artifact_source(call: Caller, source_id: str, body: schemas.Decide) -> Response:
    return await _decide(call, source_id, "enable", body)


@router.post(HERE + "/{source_id}/disable", **VIEW, **needs("artifacts.platform_source.update"))
async def disable_platform_artifact_source(call: Caller, source_id: str, body: schemas.Decide) -> Response:
    """Disable an artifact source of the platform.
    Nothing is delivered from it any more, not even deliveries offered before."""
    return await _decide(call, source_id, "disable", body)


@router.post(HERE + "/{source_id}/remove", **VIEW, **needs("artifacts.platform_source.update"))
async def remove_platform_artifact_source(call: Caller, source_id: str, body: schemas.Decide) -> Response:
    return await _decide(call, source_id, "remove", body)


@router.post(HERE + "/{source_id}/credential", **VIEW, **needs("artifacts.platform_source.update"))
async def set_platform_artifact_credential(call: Caller, source_id: str, body: schemas.SetCredential) -> Response:
    return await _credential(call, source_id, body)


@router.post(TENANTS, status_code=201, **VIEW, **needs("artifacts.tenant_source.create", "tenant"))
async def create_tenant_artifact_source(call: Caller, tenant_id: str, body: schemas.CreateSource) -> Response:
    """Create an artifact source of the tenant. Policies refer to it as `TENANT.NAME`, and all policies apply to it."""
    return await _create(call, body, f"/v1/tenants/{tenant_id}/artifact-sources")


@router.get(TENANTS, **needs("artifacts.tenant_source.read", "tenant"))
async def list_tenant_artifact_sources(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.SourceView]:
    """List the artifact sources of the tenant and of the platform."""
    return await _list(call, limit, cursor)


@router.get(TENANTS + "/{source_id}", **needs("artifacts.tenant_source.read", "tenant"))
async def get_tenant_artifact_source(call: Caller, tenant_id: str, source_id: str) -> schemas.SourceView:
    return await _get(call, source_id)


@router.post(TENANTS + "/{source_id}/enable", **VIEW, **needs("artifacts.tenant_source.update", "tenant"))
async def enable_tenant_artifact_source(call: Caller, tenant_id: str, source_id: str, body: schemas.Decide) -> Response:
    return await _decide(call, source_id, "enable", body)


@router.post(TENANTS + "/{source_id}/disable", **VIEW, **needs("artifacts.tenant_source.update", "tenant"))
async def disable_tenant_artifact_source(
    call: Caller, tenant_id: str, source_id: str, body: schemas.Decide
) -> Response:
    return await _decide(call, source_id, "disable", body)


@router.post(TENANTS + "/{source_id}/remove", **VIEW, **needs("artifacts.tenant_source.update", "tenant"))
async def remove_tenant_artifact_source(call: Caller, tenant_id: str, source_id: str, body: schemas.Decide) -> Response:
    return await _decide(call, source_id, "remove", body)


@router.post(TENANTS + "/{source_id}/credential", **VIEW, **needs("artifacts.tenant_source.update", "tenant"))
async def set_tenant_artifact_credential(
    call: Caller, tenant_id: str, source_id: str, body: schemas.SetCredential
) -> Response:
    return await _credential(call, source_id, body)


async def _create(call: Call, body: schemas.CreateSource, where: str) -> Response:
    """Check the IP addresses of the source's host, then create the source. A host name that cannot be resolved now is
    accepted and checked at the first use."""
    private = isinstance(body, schemas.CreatePlatformSource) and body.private_addresses
    address = checked(body.base_url, private=private, port=body.port)
    with contextlib.suppress(SourceAway):
        await call.platform.services.get(Reader).ask(lambda: resolved(address, private=private))
    return await call.write(
        lambda ctx: sources.create(ctx, call.vault, body), status=201, location=lambda view: f"{where}/{view.id}"
    )


async def _list(call: Call, limit: int, cursor: str | None) -> Page[schemas.SourceView]:
    return await call.read(
        lambda ctx: page(ctx, sources.sources_of(ctx.scope), artifact_sources.c.id, limit, cursor, sources.source_view)
    )


async def _get(call: Call, source_id: str) -> schemas.SourceView:
    return await call.read(lambda ctx: sources.source_view(sources.source_row(ctx.tx, ctx.scope, source_id)))


async def _decide(call: Call, source_id: str, action: str, body: schemas.Decide) -> Response:
    return await call.write(lambda ctx: sources.decide(ctx, source_id, action, body.reason))


async def _credential(call: Call, source_id: str, body: schemas.SetCredential) -> Response:
    return await call.write(lambda ctx: sources.set_credential(ctx, call.vault, source_id, body))
