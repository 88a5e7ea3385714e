"""Entry point of `python3 -m gpuaas_agent`, which starts the agent with the host's own Python without an
installation."""

from gpuaas_agent.cli import main

main()
