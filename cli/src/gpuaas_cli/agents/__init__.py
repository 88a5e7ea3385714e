"""`gpuaas mcp`, the interface for AI agents: the registry of operations, plans, tools, and the protocol server."""
