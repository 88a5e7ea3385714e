"""HTTP routes for the agent's archive and installer. Public, because they contain no secrets."""

from fastapi import APIRouter, Response

from ..http.call import Caller, public
from . import agent_package
from .schemas import AgentView

router = APIRouter(prefix="/v1/agent", tags=["capacity"])
INSTALLER = "/v1/agent/install.py"


@router.get("", **public())
async def get_agent(call: Caller) -> AgentView:
    """Get the agent version that this platform ships, with the digests of its archive and installer."""
    agent = agent_package.package()
    return AgentView(
        version=agent.version,
        path=f"/v1/agent/{agent.version}",
        sha256=agent.sha256,
        size=len(agent.archive),
        installer_path=INSTALLER,
        installer_sha256=agent.installer_sha256,
    )


@router.get("/install.py", response_class=Response, **public())
async def get_installer(call: Caller) -> Response:
    """Download the installer: a small Python program that downloads the archive, verifies it, and starts the agent."""
    agent = agent_package.package()
    return _file(agent.installer, "text/x-python; charset=utf-8", agent.installer_sha256)


@router.get("/{agent_version}", response_class=Response, **public())
async def get_agent_archive(call: Caller, agent_version: str) -> Response:
    """Download the agent as a reproducible tar archive; `current` stands for the version that the platform ships
    now."""
    agent = agent_package.of_version(agent_version)
    return _file(agent.archive, "application/x-tar", agent.sha256)


def _file(content: bytes, media: str, sha256: str) -> Response:
    return Response(content, media_type=media, headers={"X-Sha256": sha256, "ETag": f'"{sha256}"'})
