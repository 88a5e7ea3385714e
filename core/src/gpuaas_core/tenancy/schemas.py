"""Requests and responses of tenants and projects."""

from pydantic import Field

from ..kit.wire import Input, Moment, Slug, Title, View


class CreateTenant(Input):
    slug: Slug
    name: Title


class TenantView(View):
    id: str
    slug: str
    name: str
    created_at: Moment


class CreateProject(Input):
    slug: Slug
    name: Title


class ProjectView(View):
    id: str
    tenant_id: str
    slug: str
    name: str
    roles: list[str] = Field([], description="the caller's own roles there, by name")
    created_at: Moment
