"""Artifacts: which sources content for nodes may come from, what is registered, and how it is delivered to a node."""
