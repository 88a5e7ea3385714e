"""Idempotent steps on a host: each probes first and acts only if needed. deploy.py and teardown.py define their
order."""

from gpuaas_sdk.host_steps.step import Stage, Step, Task

__all__ = ["Stage", "Step", "Task"]
