"""The protocol: serves tools.py to an agent over standard input and output (MCP). Called by `gpuaas mcp`.

The only file that knows the `mcp` library. Work is done in threads, since the SDK's plain client waits; an error is an
answer the agent can read: a sentence, what can be done, a code, a correlation id.
"""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
from gpuaas_sdk.client.correlation import correlation
from gpuaas_sdk.client.errors import GpuaasError
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from .. import __version__, failures
from ..failures import CliError
from .tools import READ_ONLY, Tool, Tools

INSTRUCTIONS = """\
GPUaaS runs GPU apps on machines that a project holds. Begin with `find` (get_catalog, list_instances,
list_allocations), look closer with `describe`, and ask `operations` for the arguments of anything. To change something:
`plan` it, show the plan to the person you act for, then `apply` it and `watch` the operation in the answer to its end.
When it fails, `triage` its correlation id. Errors say what can be done: do that, and do not repeat what was refused.
Secrets never pass through here."""


def serve(tools: Tools, *, read_only: bool) -> None:
    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in tools.listed()])

    async def call_tool(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(answer, tools, asked.name, asked.arguments or {})

    said = f"{INSTRUCTIONS}\n{READ_ONLY}" if read_only else INSTRUCTIONS
    server: Server[Any] = Server(
        "gpuaas", version=__version__, instructions=said, on_list_tools=list_tools, on_call_tool=call_tool
    )

    async def run() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)


def _listed(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=not tool.changes, idempotent_hint=True, destructive_hint=tool.changes)
    return types.Tool(name=tool.name, description=tool.sentence, input_schema=tool.schema, annotations=hints)


def answer(tools: Tools, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    with correlation() as correlation_id:
        try:
            found = {"correlation_id": correlation_id, "answer": tools.run(name, arguments)}
            return _result(found, wrong=False)
        except Exception as error:
            return _result(_told(error, correlation_id), wrong=True)


def _result(said: dict[str, Any], *, wrong: bool) -> types.CallToolResult:
    plain = msgspec.to_builtins(said)
    text = types.TextContent(type="text", text=msgspec.json.encode(plain).decode())
    return types.CallToolResult(content=[text], structured_content=plain, is_error=wrong)


def _told(error: Exception, correlation_id: str) -> dict[str, Any]:
    if isinstance(error, CliError):
        said = {"error": str(error), "what_you_can_do": error.way_out, "code": "refused_here", "retryable": False}
        return {**said, "correlation_id": correlation_id}
    if isinstance(error, GpuaasError):
        sign_in = failures.exit_code(error) == failures.SIGN_IN
        way_out = "Ask the person to sign in again: gpuaas login" if sign_in else error.way_out
        fields = [f"{one.pointer or 'request'}: {one.message}" for one in getattr(error, "errors", [])]
        said = {"error": str(error), "what_you_can_do": way_out, "code": error.code, "retryable": error.retryable}
        return {**said, "fields": fields, "correlation_id": error.correlation_id or correlation_id}
    sentence = f"This is a bug of gpuaas: {type(error).__name__}: {error}"
    said = {"error": sentence, "what_you_can_do": "Tell the person; `gpuaas` itself may do it.", "code": "bug"}
    return {**said, "retryable": False, "correlation_id": correlation_id}
