"""The platform for agents: `gpuaas mcp`. What can be asked, plans, tools, and the protocol, a file each."""
