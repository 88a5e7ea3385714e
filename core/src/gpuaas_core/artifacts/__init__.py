"""Artifacts: where content for machines may come from, what is registered, and how a machine gets exactly that."""
