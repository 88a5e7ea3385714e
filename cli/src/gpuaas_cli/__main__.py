"""Runs `gpuaas` as `python -m gpuaas_cli`."""

from .main import run

run()
