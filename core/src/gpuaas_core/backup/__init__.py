"""Backup and restore: copies the database while it serves, and fences stale state after a restore."""
