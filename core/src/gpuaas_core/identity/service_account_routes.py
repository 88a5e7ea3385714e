"""HTTP routes of the service accounts of a project and their keys."""

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..http.call import Caller, Returns, needs
from ..http.lists import Cursor, Limit, page
from ..iam.directory import PRINCIPAL_ID, accounts_of
from ..kit.wire import Page
from . import schemas, service_accounts

router = APIRouter(prefix="/v1/projects/{project_id}/service-accounts", tags=["identity and tenancy"])
_ONE: Returns = {"response_model": schemas.ServiceAccountView}


@router.post("", status_code=201, **_ONE, **needs("iam.service_account.create", "project"))
async def create_service_account(call: Caller, project_id: str, body: schemas.CreateServiceAccount) -> Response:
    """Create a service account with its public key. The owner keeps the private key and never sends it to the
    platform."""
    return await call.write(
        lambda ctx: service_accounts.account_view(
            ctx.tx, service_accounts.create_service_account(ctx, project_id, body)
        ),
        status=201,
    )


@router.get("", **needs("iam.service_account.read", "project"))
async def list_service_accounts(
    call: Caller, project_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.ServiceAccountView]:
    """List the service accounts with their roles and the time of their last sign-in."""
    query = accounts_of(project_id)
    return await call.read(
        lambda ctx: page(
            ctx, query, PRINCIPAL_ID, limit, cursor, lambda row: service_accounts.account_view(ctx.tx, row)
        )
    )


@router.post("/{account_id}/disable", **_ONE, **needs("iam.service_account.disable", "project"))
async def disable_service_account(call: Caller, project_id: str, account_id: str) -> Response:
    """Disable a service account, effective on its next request."""
    return await call.write(
        lambda ctx: service_accounts.account_view(
            ctx.tx, service_accounts.set_enabled(ctx, project_id, account_id, enabled=False)
        )
    )


@router.post("/{account_id}/enable", **_ONE, **needs("iam.service_account.disable", "project"))
async def enable_service_account(call: Caller, project_id: str, account_id: str) -> Response:
    """Enable a service account so that it can sign in again; its old tokens stay rejected."""
    return await call.write(
        lambda ctx: service_accounts.account_view(
            ctx.tx, service_accounts.set_enabled(ctx, project_id, account_id, enabled=True)
        )
    )


@router.post("/{account_id}/delete", **_ONE, **needs("iam.service_account.delete", "project"))
async def delete_service_account(call: Caller, project_id: str, account_id: str) -> Response:
    """Delete a service account at once, with its keys, tokens and roles. Its name stays in events and audit rows."""
    return await call.write(
        lambda ctx: service_accounts.account_view(
            ctx.tx, service_accounts.delete_service_account(ctx, project_id, account_id)
        )
    )


@router.get("/{account_id}/keys", **needs("iam.service_account.read", "project"))
async def list_keys(call: Caller, project_id: str, account_id: str) -> Page[schemas.KeyView]:
    """List every key of a service account, including retired keys, with the time of its last use."""

    def read(ctx: Context) -> list[schemas.KeyView]:
        account = service_accounts.account_row(ctx.tx, project_id, account_id)
        return [service_accounts.key_view(row) for row in service_accounts.keys_of(ctx.tx, account.id)]

    return Page(items=await call.read(read))


@router.post(
    "/{account_id}/keys",
    status_code=201,
    response_model=schemas.KeyView,
    **needs("iam.service_account.rotate", "project"),
)
async def add_key(call: Caller, project_id: str, account_id: str, body: schemas.AddKey) -> Response:
    """Add a public key to a service account. Its other keys stay valid until they are retired."""
    return await call.write(
        lambda ctx: service_accounts.key_view(service_accounts.add_key(ctx, project_id, account_id, body)), status=201
    )


@router.post(
    "/{account_id}/keys/{key_id}/retire",
    response_model=schemas.KeyView,
    **needs("iam.service_account.rotate", "project"),
)
async def retire_key(call: Caller, project_id: str, account_id: str, key_id: str) -> Response:
    """Retire a key of a service account: the key cannot sign in any more, and tokens issued for it are rejected from
    now on."""
    return await call.write(
        lambda ctx: service_accounts.key_view(service_accounts.retire_key(ctx, project_id, account_id, key_id))
    )
