"""HTTP routes for the SSH authorities of a tenant and their rotation."""

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from . import authority_rotation, schemas

router = APIRouter(prefix="/v1/tenants/{tenant_id}/ssh-authorities", tags=["custody"])


@router.get("", **needs("custody.authority.read", "tenant"))
async def list_ssh_authorities(call: Caller, tenant_id: str) -> schemas.AuthoritiesView:
    """List the SSH authorities of the tenant with their public keys, and the nodes or grants that a rotation waits
    for."""
    return await call.read(lambda ctx: authority_rotation.view(ctx.tx, tenant_id, ctx.now))


@router.post("/rotate", response_model=schemas.AuthoritiesView, **needs("custody.authority.rotate", "tenant"))
async def rotate_ssh_authority(call: Caller, tenant_id: str, body: schemas.RotateAuthority) -> Response:
    """Start the rotation of an SSH authority. Its further steps are taken automatically, as soon as they lock out no
    host or client."""
    return await call.write(lambda ctx: authority_rotation.rotate(ctx, call.vault, tenant_id, body.purpose))


@router.post("/finish", response_model=schemas.AuthoritiesView, **needs("custody.authority.rotate", "tenant"))
async def finish_ssh_authority_rotation(call: Caller, tenant_id: str, body: schemas.FinishRotation) -> Response:
    """Take the next step of a rotation now. The request is rejected if the step would lock out hosts or clients, unless
    it has `force`."""

    def finish(ctx: Context) -> schemas.AuthoritiesView:
        return authority_rotation.finish(ctx, call.vault, tenant_id, body.purpose, force=body.force)

    return await call.write(finish)
