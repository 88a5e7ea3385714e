"""HTTP routes that register, list and withdraw artifacts of the platform and of tenants,
and list them for a project."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..http.call import Call, Caller, Returns, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from ..policy.reads import overlays_for
from . import registry, resolution, schemas
from .fetch import Reader
from .rows import ArtifactRow
from .tables import artifacts

router = APIRouter(prefix="/v1", tags=["artifacts"])
HERE, TENANTS, PROJECTS = "/artifacts", "/tenants/{tenant_id}/artifacts", "/projects/{project_id}/artifacts"
VIEW: Returns = {"response_model": schemas.ArtifactView}
Called = Annotated[str | None, Query(max_length=40, description="only artifacts with this name")]
Withdrawn = Annotated[bool, Query(description="include withdrawn artifacts")]


@router.post(HERE, status_code=201, **VIEW, **needs("artifacts.platform_artifact.create"))
async def register_platform_artifact(call: Caller, body: schemas.Register) -> Response:
    """Register an artifact of the platform. Every tenant whose policies allow the artifact's source may use it."""
    return await _register(call, body, f"/v1{HERE}")


@router.get(HERE, **needs("artifacts.platform_artifact.read"))
async def list_platform_artifacts(
    call: Caller, name: Called = None, withdrawn: Withdrawn = False, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.ArtifactView]:
    return await _list(call, name, withdrawn, limit, cursor)


@router.get(HERE + "/{artifact_id}", **needs("artifacts.platform_artifact.read"))
async def get_platform_artifact(call: Caller, artifact_id: str) -> schemas.ArtifactView:
    return await _get(call, artifact_id)


@router.post(HERE + "/{artifact_id}/withdraw", **VIEW, **needs("artifacts.platform_artifact.withdraw"))
async def withdraw_platform_artifact(call: Caller, artifact_id: str, body: schemas.Decide) -> Response:
    return await call.write(lambda ctx: registry.withdraw(ctx, artifact_id, body.reason))


@router.post(TENANTS, status_code=201, **VIEW, **needs("artifacts.tenant_artifact.create", "tenant"))
async def register_tenant_artifact(call: Caller, tenant_id: str, body: schemas.Register) -> Response:
    """Register an artifact of the tenant: immutable content under a name and a version.

    Without `sha256` the core reads the content from its source now and computes the digest.
    """
    return await _register(call, body, f"/v1/tenants/{tenant_id}/artifacts")


@router.get(TENANTS, **needs("artifacts.tenant_artifact.read", "tenant"))
async def list_tenant_artifacts(
    call: Caller,
    tenant_id: str,
    name: Called = None,
    withdrawn: Withdrawn = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[schemas.ArtifactView]:
    """List the artifacts of the tenant and of the platform."""
    return await _list(call, name, withdrawn, limit, cursor)


@router.get(TENANTS + "/{artifact_id}", **needs("artifacts.tenant_artifact.read", "tenant"))
async def get_tenant_artifact(call: Caller, tenant_id: str, artifact_id: str) -> schemas.ArtifactView:
    return await _get(call, artifact_id)


@router.post(TENANTS + "/{artifact_id}/withdraw", **VIEW, **needs("artifacts.tenant_artifact.withdraw", "tenant"))
async def withdraw_tenant_artifact(call: Caller, tenant_id: str, artifact_id: str, body: schemas.Decide) -> Response:
    """Withdraw an artifact: it is no longer delivered. Its name and version cannot be registered again."""
    return await call.write(lambda ctx: registry.withdraw(ctx, artifact_id, body.reason))


@router.get(PROJECTS, **needs("artifacts.artifact.read", "project"))
async def list_project_artifacts(
    call: Caller, project_id: str, name: Called = None, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.ProjectArtifactView]:
    """List the registered artifacts, each with `allowed` (whether the project may use the artifact) and the reason."""

    def read(ctx: Context) -> Page[schemas.ProjectArtifactView]:
        overlays = overlays_for(ctx.tx, ctx.scope)
        query = registry.listed(ctx.scope, name=name, withdrawn=False)
        return page(ctx, query, artifacts.c.id, limit, cursor, lambda row: registry.project_view(ctx, row, overlays))

    return await call.read(read)


@router.post(
    PROJECTS + "/resolve",
    response_model=schemas.ProjectArtifactView,
    **needs("artifacts.artifact.read", "project"),
)
async def resolve_artifact(call: Caller, project_id: str, body: schemas.Resolve) -> Response:
    """Return the artifact if the project may use it; otherwise return the error that a delivery would get."""

    def resolve(ctx: Context) -> schemas.ProjectArtifactView:
        row = _find(ctx, body)
        ctx.resource_id = row.id
        overlays = overlays_for(ctx.tx, ctx.scope, body.app_slug)
        resolution.require_artifact(ctx.tx, overlays, row)
        return registry.project_view(ctx, row, overlays)

    return await call.write(resolve, repeats=False, audited=False)


@router.get(PROJECTS + "/{artifact_id}", **needs("artifacts.artifact.read", "project"))
async def get_project_artifact(call: Caller, project_id: str, artifact_id: str) -> schemas.ProjectArtifactView:
    def read(ctx: Context) -> schemas.ProjectArtifactView:
        row = resolution.artifact_row(ctx.tx, ctx.scope, artifact_id)
        return registry.project_view(ctx, row, overlays_for(ctx.tx, ctx.scope))

    return await call.read(read)


def _find(ctx: Context, body: schemas.Resolve) -> ArtifactRow:
    if body.artifact_id:
        return resolution.artifact_row(ctx.tx, ctx.scope, body.artifact_id)
    return resolution.artifact_called(ctx.tx, ctx.scope, str(body.name), str(body.version))


async def _register(call: Call, body: schemas.Register, where: str) -> Response:
    prepared = await call.read(lambda ctx: registry.prepare(ctx, call.vault, body))
    content, reference = await registry.read_content(call.platform.services.get(Reader), prepared)
    return await call.write(
        lambda ctx: registry.register(ctx, body, content, reference),
        status=201,
        location=lambda view: f"{where}/{view.id}",
    )


async def _list(
    call: Call, name: str | None, withdrawn: bool, limit: int, cursor: str | None
) -> Page[schemas.ArtifactView]:
    return await call.read(
        lambda ctx: page(
            ctx,
            registry.listed(ctx.scope, name=name, withdrawn=withdrawn),
            artifacts.c.id,
            limit,
            cursor,
            registry.view,
        )
    )


async def _get(call: Call, artifact_id: str) -> schemas.ArtifactView:
    return await call.read(lambda ctx: registry.view(resolution.artifact_row(ctx.tx, ctx.scope, artifact_id)))
