"""Nodes, their trust configuration, and their allocation to projects."""
