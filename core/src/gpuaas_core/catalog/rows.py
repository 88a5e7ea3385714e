"""Rows of apps, versions and entitlements: frozen, with typed ids."""

from dataclasses import dataclass
from typing import NewType

from .manifest_types import Manifest

AppId = NewType("AppId", str)
AppVersionId = NewType("AppVersionId", str)


@dataclass(frozen=True)
class AppRow:
    """The columns of `tables.apps`, in their order."""

    id: AppId
    slug: str
    name: str
    description: str
    created_at: int


@dataclass(frozen=True)
class AppVersionRow:
    """The columns of `tables.app_versions`, in their order."""

    id: AppVersionId
    app_slug: str
    version: str
    manifest: Manifest
    state: str
    state_reason: str | None
    published_at: int | None
    created_at: int


@dataclass(frozen=True)
class EntitlementRow:
    """The columns of `tables.entitlements`, in their order."""

    project_id: str
    app_slug: str
    enabled: int
    expires_at: int | None
    created_at: int
    updated_at: int
