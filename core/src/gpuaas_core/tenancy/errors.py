"""Errors of tenants and projects."""

from ..kit.problems import Problem


class SlugTaken(Problem):
    status, code, title = 409, "slug_taken", "Slug already in use"
    way_out = "Choose another slug."
