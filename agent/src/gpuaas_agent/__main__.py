"""`python3 -m gpuaas_agent`: how the host's own Python starts the agent without installing anything."""

from gpuaas_agent.cli import main

main()
