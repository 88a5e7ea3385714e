"""HTTP in, HTTP out: a person gets onto the machine of a member."""

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from . import ssh_sessions
from .access_schemas import OpenSshSession, SshSessionView

router = APIRouter(
    prefix="/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}/ssh-sessions", tags=["machine access"]
)


@router.post("", status_code=201, response_model=SshSessionView, **needs("apps.access.enter", "project"))
async def open_ssh_session(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: OpenSshSession
) -> Response:
    """A certificate for the machine of this member: opens for five minutes, as a user without rights there. It ends,
    with the session, when the caller loses the permission, the member leaves, or somebody revokes it."""

    def opened(ctx: Context) -> SshSessionView:
        return ssh_sessions.open_session(ctx, call.vault, project_id, instance_id, member_id, body)

    return await call.write(opened, status=201)
