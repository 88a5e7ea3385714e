"""`gpuaas mcp`: the platform for an agent, over standard input and output."""

from __future__ import annotations

from typing import Annotated

from .. import failures
from ..failures import CliError
from ..options import Common, Flag


def mcp(*, allow_changes: Annotated[bool, Flag] = False, common: Common = Common()) -> None:
    """Serve an agent (Model Context Protocol) over standard input and output, as you, with what you may do.

    It looks; with --allow-changes it also does what it planned and showed before. Secrets never pass through it.

    Example: gpuaas mcp
    Example: gpuaas mcp --allow-changes --project research

    Parameters
    ----------
    allow_changes
        Let the agent apply its plans.
    """
    try:
        import mcp as _library  # noqa: F401 - only whether it is there
    except ImportError:
        way_out = "Install it: pip install 'gpuaas-cli[mcp]'"
        raise CliError("This gpuaas was installed without what agents need.", way_out, failures.USAGE) from None
    from ..agents.server import serve
    from ..agents.tools import Tools

    serve(Tools(common, allow_changes=allow_changes), read_only=not allow_changes)
