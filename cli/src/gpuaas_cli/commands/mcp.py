"""`gpuaas mcp`: serves an AI agent over standard input and output."""

from __future__ import annotations

from typing import Annotated

from .. import failures
from ..failures import CliError
from ..options import Common, Flag


def mcp(*, allow_changes: Annotated[bool, Flag] = False, common: Common = Common()) -> None:
    """Serve an AI agent (Model Context Protocol) over standard input and output, with your permissions.

    The agent can only read; with --allow-changes it can apply plans that it showed before. Secrets are never exposed.

    Example: gpuaas mcp
    Example: gpuaas mcp --allow-changes --project research

    Parameters
    ----------
    allow_changes
        Let the agent apply plans that it showed before.
    """
    try:
        import mcp as _library  # noqa: F401 - only to check that it is installed
    except ImportError:
        way_out = "Install it: pip install 'gpuaas-cli[mcp]'"
        raise CliError("The MCP library is not installed.", way_out, failures.USAGE) from None
    from ..agents.server import serve
    from ..agents.tools import Tools

    serve(Tools(common, allow_changes=allow_changes), read_only=not allow_changes)
