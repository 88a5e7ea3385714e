"""What the catalog takes in and shows."""

from typing import Annotated, Any

from pydantic import StringConstraints

from ..kit.wire import Input, Moment, Sentence, Slug, Title, View

Version = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$", max_length=32)]


class CreateApp(Input):
    slug: Slug
    name: Title
    description: Sentence = ""


class AppView(View):
    slug: str
    name: str
    description: str
    created_at: Moment


class CreateVersion(Input):
    version: Version
    manifest: dict[str, Any]


class VersionView(View):
    app_slug: str
    version: str
    manifest: dict[str, Any]
    published: bool
    created_at: Moment


class CreateEntitlement(Input):
    app_slug: Slug


class EntitlementView(View):
    project_id: str
    app_slug: str
    enabled: bool
    updated_at: Moment


class CatalogEntry(View):
    app: AppView
    version: str | None
    entitled: bool
    reason: str
    manifest: dict[str, Any] | None
