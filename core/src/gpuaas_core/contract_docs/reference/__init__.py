"""Generates the reference pages in docs/reference from the tables that the platform uses, so the pages stay current."""

from fastapi import FastAPI

from . import errors, events, lifecycles, numbers, permissions

NOTE = "\n<!-- Written by `make contracts` from the code; edits here are lost. -->\n"


def pages(app: FastAPI) -> dict[str, str]:
    written = {
        "errors.md": errors.page(),
        "events.md": events.page(),
        "lifecycles.md": lifecycles.page(),
        "numbers.md": numbers.page(),
        "permissions.md": permissions.page(app),
    }
    return {name: text + NOTE for name, text in written.items()}
