"""Artifacts: the sources from which nodes get content, the registered artifacts, and their delivery to nodes."""
