"""What tenancy takes in and shows."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from ..kit.wire import Input, Moment, Slug, Title, View


def _fits(email: str) -> str:
    if len(email) > 254:  # some letters become two when made small
        raise ValueError("an e-mail address has at most 254 characters")
    return email


Email = Annotated[
    str,
    StringConstraints(pattern=r"^[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,180}$", to_lower=True),
    AfterValidator(_fits),
]


class SignIn(Input):
    email: Email
    password: Annotated[str, StringConstraints(min_length=1, max_length=256)]


class TokenView(View):
    access_token: str
    token_type: str = "Bearer"  # noqa: S105 - the OAuth word, not a secret
    expires_in: int
    principal_id: str


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
    created_at: Moment


class CreateUser(Input):
    email: Email
    name: Title
    password: Annotated[str, StringConstraints(min_length=12, max_length=256)] = Field(repr=False)


class PrincipalView(View):
    id: str
    kind: str
    name: str
    email: str | None = None
    tenant_id: str | None = None
    project_id: str | None = None
    disabled: bool = False
    created_at: Moment


class CreateBinding(Input):
    principal_id: str
    role: str
    project_id: str | None = None


class BindingView(View):
    id: str
    principal_id: str
    role: str
    scope_kind: str
    scope_id: str
    created_at: Moment


class CreateServiceAccount(Input):
    name: Slug
    public_jwk: dict[str, Any]
    roles: list[str] = Field(default_factory=lambda: ["app_operator"], min_length=1, max_length=5)


class ProjectMembership(View):
    id: str
    tenant_id: str
    slug: str
    name: str
    roles: list[str]


class HeldRole(View):
    role: str
    scope_kind: str
    scope_id: str


class WhoamiView(View):
    principal: PrincipalView
    tenants: list[TenantView]
    projects: list[ProjectMembership]
    roles: list[HeldRole]
