"""Requests and responses of the catalog."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from ..kit.wire import Input, Moment, Sentence, Slug, Title, View, Whole, describe_pattern
from ..policy.schemas import PolicyView, Reason, Rules

TEN_YEARS_S = 10 * 366 * 24 * 3600

_VERSION = describe_pattern(r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$", "a version like 1.2.3 or 1.2.3-rc.1")
Version = Annotated[str, StringConstraints(pattern=_VERSION, max_length=32)]


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


class EndVersion(Input):
    reason: Sentence = Field("", description="why, and what to use instead; shown to users of the version")


class VersionView(View):
    app_slug: str
    version: str
    manifest: dict[str, Any]
    state: str = Field(description="draft, published, deprecated or withdrawn")
    state_reason: str | None
    published: bool
    available_actions: list[str]
    created_at: Moment


class CreateEntitlement(Input):
    app_slug: Slug
    overlay: Rules | None = Field(
        None, description="restricts this project's use of this app; omit to keep the current one"
    )
    reason: Reason = Field("", description="of the overlay; shown in every refusal")
    expires_in_s: Whole | None = Field(None, ge=60, le=TEN_YEARS_S, description="omit for no expiry")


class EntitlementView(View):
    project_id: str
    app_slug: str
    enabled: bool
    active: bool = Field(description="enabled and not expired")
    expires_at: Moment | None
    overlay: PolicyView | None
    updated_at: Moment


class DisabledEntitlementView(EntitlementView):
    keeps_running: list[str] = Field(description="names of the project's instances of the app, which keep running")


class CatalogEntry(View):
    app: AppView
    version: str | None
    state: str | None = Field(None, description="of that version")
    entitled: bool
    deployable: bool = Field(description="entitled, allowed by policy, and a version is published")
    reason: str = Field(description="one sentence: ready, or why not")
    warnings: list[str] = Field(default_factory=list)
    manifest: dict[str, Any] | None
