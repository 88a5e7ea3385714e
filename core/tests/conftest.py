"""Fixtures of the core's tests live in world.py and served.py, so that test files can import their types by name."""

import structlog
from served import served
from world import admin, api, clock, platform, store, world

__all__ = ["admin", "api", "clock", "platform", "served", "store", "world"]

# As the core logs in production; structlog's default draws every local variable of every frame of an error.
structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()])
