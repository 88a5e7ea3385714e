"""Fixtures of the core's tests live in world.py, served.py and trail.py, so that test files can import their types by name."""

import structlog
from served import served
from trail import here, trail
from world import admin, api, clock, platform, store, world

__all__ = ["admin", "api", "clock", "here", "platform", "served", "store", "trail", "world"]

# As the core logs in production; structlog's default draws every local variable of every frame of an error.
structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()])
