"""Registers the app and this version in the platform's catalog through the public API. Safe to repeat."""

from typing import Any

from gpuaas_sdk import Client
from gpuaas_sdk.client.errors import Conflict, NotFound

from gpuaas_slurm import APP_SLUG, __version__, manifest


def publish(client: Client) -> str:
    words = manifest.load()
    made = [_app(client, words["title"], words["summary"]), _version(client, words)]
    return f"{APP_SLUG} {__version__}: {', '.join(made)}."


def _app(client: Client, title: str, summary: str) -> str:
    try:
        client.get_app(APP_SLUG)
        return "app was there"
    except NotFound:
        client.create_app(slug=APP_SLUG, name=title, description=summary)
        return "app registered"


def _version(client: Client, words: dict[str, Any]) -> str:
    known = {v.version: v for v in client.list_versions(APP_SLUG).items}
    if __version__ not in known:
        client.create_version(APP_SLUG, version=__version__, manifest=words)
    elif known[__version__].manifest and known[__version__].manifest != words:
        raise SystemExit(f"Version {__version__} is in the catalog with another manifest; raise the app's version.")
    state = getattr(known.get(__version__), "state", "draft")
    if state != "draft":  # also deprecated or withdrawn: a publisher decided that
        return f"version was {state}"
    try:
        client.publish_version(APP_SLUG, __version__)
    except Conflict:
        return "version was published"
    return "version published"
