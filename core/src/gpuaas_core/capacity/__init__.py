"""Nodes: how they enrol, what they trust, and which project holds which node."""
