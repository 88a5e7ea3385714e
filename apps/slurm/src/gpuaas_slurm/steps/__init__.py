"""Idempotent acts on a host: look first, then do. deploy.py and teardown.py list them in order."""

from gpuaas_sdk.host_steps.step import Stage, Step, Task

__all__ = ["Stage", "Step", "Task"]
