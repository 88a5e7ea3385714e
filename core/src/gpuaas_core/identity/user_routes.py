"""HTTP routes of the users of a tenant, and of invitations."""

import asyncio

from fastapi import APIRouter, Response

from ..http.call import Caller, needs, public
from ..http.lists import Cursor, Limit, page
from ..iam.directory import PRINCIPAL_ID, users_of
from ..kit.json_types import Json
from ..kit.wire import Page
from . import invitations, passwords, schemas, users
from .users import principal_view

router = APIRouter(prefix="/v1", tags=["identity and tenancy"])


@router.post(
    "/tenants/{tenant_id}/users",
    status_code=201,
    response_model=schemas.PrincipalView,
    **needs("tenancy.user.create", "tenant"),
)
async def create_user(call: Caller, tenant_id: str, body: schemas.CreateUser) -> Response:
    hashed = await asyncio.to_thread(passwords.hash_password, body.password)
    return await call.write(
        lambda ctx: principal_view(
            users.create_user(ctx, tenant_id, email=body.email, name=body.name, password_hash=hashed)
        ),
        status=201,
    )


@router.post(
    "/tenants/{tenant_id}/users/{user_id}/disable",
    response_model=schemas.PrincipalView,
    **needs("tenancy.user.disable", "tenant"),
)
async def disable_user(call: Caller, tenant_id: str, user_id: str) -> Response:
    """Disable a user, effective on the user's next request. All sessions of the user are closed."""
    return await call.write(lambda ctx: principal_view(users.set_enabled(ctx, tenant_id, user_id, enabled=False)))


@router.post(
    "/tenants/{tenant_id}/users/{user_id}/enable",
    response_model=schemas.PrincipalView,
    **needs("tenancy.user.disable", "tenant"),
)
async def enable_user(call: Caller, tenant_id: str, user_id: str) -> Response:
    return await call.write(lambda ctx: principal_view(users.set_enabled(ctx, tenant_id, user_id, enabled=True)))


@router.post(
    "/tenants/{tenant_id}/invitations",
    status_code=201,
    response_model=schemas.InvitedView,
    **needs("tenancy.user.create", "tenant"),
)
async def create_invitation(call: Caller, tenant_id: str, body: schemas.CreateInvitation) -> Response:
    """Invite a person, optionally with a role. The token is only in this response: the platform computes it and does
    not store it."""

    def with_token(answer: Json) -> Json:
        return {**answer, "token": invitations.invitation_token(call.vault, str(answer["id"]))}

    return await call.write(
        lambda ctx: invitations.view(invitations.create_invitation(ctx, tenant_id, body), ctx.now),
        status=201,
        finish=with_token,
    )


@router.get("/tenants/{tenant_id}/invitations", **needs("tenancy.user.read", "tenant"))
async def list_invitations(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.InvitationView]:
    query = invitations.invitations_of(tenant_id)
    return await call.read(
        lambda ctx: page(
            ctx, query, invitations.INVITATION_ID, limit, cursor, lambda row: invitations.view(row, ctx.now)
        )
    )


@router.post(
    "/tenants/{tenant_id}/invitations/{invitation_id}/revoke",
    response_model=schemas.InvitationView,
    **needs("tenancy.user.create", "tenant"),
)
async def revoke_invitation(call: Caller, tenant_id: str, invitation_id: str) -> Response:
    return await call.write(
        lambda ctx: invitations.view(invitations.revoke_invitation(ctx, tenant_id, invitation_id), ctx.now)
    )


@router.post("/invitations/accept", status_code=201, response_model=schemas.PrincipalView, **public())
async def accept_invitation(call: Caller, body: schemas.AcceptInvitation) -> Response:
    """Create the account of the invited person with the password that the person chose. The token of an invitation
    works once."""
    await call.read(lambda ctx: invitations.check_token(ctx.tx, call.vault, body.token, ctx.now))
    hashed = await asyncio.to_thread(passwords.hash_password, body.password)
    return await call.write(
        lambda ctx: principal_view(invitations.accept(ctx, call.vault, body, hashed)), status=201, repeats=False
    )


@router.get("/tenants/{tenant_id}/users", **needs("tenancy.user.read", "tenant"))
async def list_users(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.PrincipalView]:
    return await call.read(lambda ctx: page(ctx, users_of(tenant_id), PRINCIPAL_ID, limit, cursor, principal_view))
