"""Backup and restore: a store copied while it serves, and brought back so that nothing goes back with it."""
