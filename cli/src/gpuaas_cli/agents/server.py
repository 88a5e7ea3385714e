"""The MCP server: serves tools.py to an agent over standard input and output. Called by `gpuaas mcp`.

No other module imports the `mcp` library. Calls run in threads, because the SDK's client is synchronous. An error is
returned as an answer with a sentence, what to do, a code and a correlation id.
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
GPUaaS runs GPU apps on the nodes of a project. Start with `find` (get_catalog, list_instances, list_allocations),
read details with `describe`, and use `operations` for the arguments of an operation. To change something: `plan` it,
show the plan to the user, then `apply` it and `watch` the operation in the answer until it ends. If it fails, use
`triage` with its correlation id. An error says what to do: do that, and do not repeat a refused request. Secrets are
never exposed."""


def serve(tools: Tools, *, read_only: bool) -> None:
    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in tools.listed()])

    async def call_tool(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(answer, tools, asked.name, asked.arguments or {})

    instructions = f"{INSTRUCTIONS}\n{READ_ONLY}" if read_only else INSTRUCTIONS
    server: Server[Any] = Server(
        "gpuaas", version=__version__, instructions=instructions, on_list_tools=list_tools, on_call_tool=call_tool
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
            return _result(_error(error, correlation_id), wrong=True)


def _result(data: dict[str, Any], *, wrong: bool) -> types.CallToolResult:
    plain = msgspec.to_builtins(data)
    text = types.TextContent(type="text", text=msgspec.json.encode(plain).decode())
    return types.CallToolResult(content=[text], structured_content=plain, is_error=wrong)


def _error(error: Exception, correlation_id: str) -> dict[str, Any]:
    if isinstance(error, CliError):
        facts = {"error": str(error), "what_you_can_do": error.way_out, "code": "refused_here", "retryable": False}
        return {**facts, "correlation_id": correlation_id}
    if isinstance(error, GpuaasError):
        sign_in = failures.exit_code(error) == failures.SIGN_IN
        way_out = "Ask the user to sign in again: gpuaas login" if sign_in else error.way_out
        fields = [f"{one.pointer or 'request'}: {one.message}" for one in getattr(error, "errors", [])]
        facts = {"error": str(error), "what_you_can_do": way_out, "code": error.code, "retryable": error.retryable}
        return {**facts, "fields": fields, "correlation_id": error.correlation_id or correlation_id}
    sentence = f"Unexpected error (a bug of gpuaas): {type(error).__name__}: {error}"
    facts = {"error": sentence, "what_you_can_do": "Report it to the user; the command line may work.", "code": "bug"}
    return {**facts, "retryable": False, "correlation_id": correlation_id}
