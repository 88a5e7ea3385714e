"""`gpuaas mcp`, the platform for AI agents: the registry of operations, plans, tools, and the protocol server."""
