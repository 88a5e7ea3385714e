"""HTTP out: the agent for hosts that have nothing yet. Public, because there is nothing secret in it."""

from fastapi import APIRouter, Response

from ..edge.call import Caller, public
from . import agent_package
from .schemas import AgentView

router = APIRouter(prefix="/v1/agent", tags=["capacity"])
INSTALLER = "/v1/agent/install.py"


@router.get("", **public())
async def get_agent(call: Caller) -> AgentView:
    """Which agent this platform gives to hosts, and the digests of archive and installer."""
    found = agent_package.package()
    return AgentView(
        version=found.version,
        path=f"/v1/agent/{found.version}",
        sha256=found.sha256,
        size=len(found.archive),
        installer_path=INSTALLER,
        installer_sha256=found.installer_sha256,
    )


@router.get("/install.py", response_class=Response, **public())
async def get_installer(call: Caller) -> Response:
    """A small Python program without secrets: it gets the archive, checks it, and starts the agent."""
    found = agent_package.package()
    return _file(found.installer, "text/x-python; charset=utf-8", found.installer_sha256)


@router.get("/{agent_version}", response_class=Response, **public())
async def get_agent_archive(call: Caller, agent_version: str) -> Response:
    """The agent as a tar archive, always the same bytes for the same version; `current` is what hosts get now."""
    found = agent_package.of_version(agent_version)
    return _file(found.archive, "application/x-tar", found.sha256)


def _file(content: bytes, media: str, sha256: str) -> Response:
    return Response(content, media_type=media, headers={"X-Sha256": sha256, "ETag": f'"{sha256}"'})
