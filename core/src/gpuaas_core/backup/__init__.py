"""Backup and restore: copies the database of a running core, and fences stale state after a restore."""
