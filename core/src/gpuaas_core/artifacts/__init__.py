"""Artifacts (files for nodes): the sources they are read from, their registration, and their delivery to nodes."""
