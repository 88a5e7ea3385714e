"""Errors of tenants and projects."""

from ..kit.problems import Problem


class SlugTaken(Problem):
    status, code, title = 409, "slug_taken", "This slug is taken"
    way_out = "Choose another slug."
