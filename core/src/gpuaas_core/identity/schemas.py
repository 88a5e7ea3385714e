"""Requests and responses of identity."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from ..kit.wire import Id, Input, Moment, Slug, Title, View, describe_pattern
from ..tenancy.schemas import TenantView

_EMAIL = describe_pattern(r"^[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,180}$", "an e-mail address like you@example.com")


def _fits(email: str) -> str:
    if len(email) > 254:  # lower-casing turns some letters into two
        raise ValueError("an e-mail address has at most 254 characters")
    return email


Email = Annotated[str, StringConstraints(pattern=_EMAIL, to_lower=True), AfterValidator(_fits)]


class SignIn(Input):
    email: Email
    password: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    tenant: Slug | None = Field(default=None, description="required only if the e-mail has accounts in several tenants")


class ConsoleSessionView(View):
    principal_id: str
    csrf_token: str | None = Field(description="send it as X-CSRF-Token with every request that changes something")


class TokenView(View):
    access_token: str
    token_type: str = "Bearer"  # noqa: S105 - the OAuth word, not a secret
    expires_in: int
    principal_id: str


NewPassword = Annotated[str, StringConstraints(min_length=12, max_length=256)]


class CreateUser(Input):
    email: Email
    name: Title
    password: NewPassword = Field(repr=False)


class ChangePassword(Input):
    current_password: Annotated[str, StringConstraints(min_length=1, max_length=256)] = Field(repr=False)
    new_password: NewPassword = Field(repr=False)


class SessionView(View):
    id: str
    current: bool = Field(description="whether this request uses it")
    address: str | None = None
    created_at: Moment
    expires_at: Moment


class SessionsEnded(View):
    ended_sessions: int


class CreateInvitation(Input):
    email: Email
    name: Title
    role: Annotated[str, StringConstraints(max_length=40)] | None = None
    project_id: Annotated[str, StringConstraints(max_length=40)] | None = None


class InvitationView(View):
    id: str
    email: str
    name: str
    role: str | None = None
    project_id: str | None = None
    state: str = Field(description="open, accepted, revoked or expired")
    invited_by: str
    expires_at: Moment
    created_at: Moment


class InvitedView(InvitationView):
    token: str = Field(default="", description="shown once; the invited person sends it with a password")


class AcceptInvitation(Input):
    token: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(repr=False)
    password: NewPassword = Field(repr=False)


class PrincipalView(View):
    id: str
    kind: str
    name: str
    email: str | None = None
    tenant_id: str | None = None
    project_id: str | None = None
    disabled: bool = False
    created_at: Moment


class CreateServiceAccount(Input):
    name: Slug
    public_jwk: dict[str, Any]
    roles: list[Id] = Field(default_factory=lambda: ["app_operator"], min_length=1, max_length=5)


class AddKey(Input):
    public_jwk: dict[str, Any]


class KeyView(View):
    id: str = Field(description="send it as `kid` in the header of the client assertion")
    public_jwk: dict[str, Any]
    active: bool
    created_at: Moment
    last_used_at: Moment | None = None
    retired_at: Moment | None = None


class ServiceAccountView(PrincipalView):
    roles: list[str]
    active_keys: int
    last_used_at: Moment | None = None


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
    projects: list[ProjectMembership] = Field(description="the first hundred the caller sees, by id")
    more_projects: bool = Field(False, description="there are more: GET /v1/projects pages through all of them")
    roles: list[HeldRole] = Field(description="at the platform, in tenants, and in the projects listed here")
