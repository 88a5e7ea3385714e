"""Fixtures of the core's tests live in world.py, so that test files can import its types by name."""

from world import admin, api, clock, password_hash, platform, world

__all__ = ["admin", "api", "clock", "password_hash", "platform", "world"]
