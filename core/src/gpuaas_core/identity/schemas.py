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


_DOMAIN = describe_pattern(
    r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$", "a domain like example.com"
)


Domain = Annotated[str, StringConstraints(max_length=180, pattern=_DOMAIN)]


_SCOPE = describe_pattern(r"^[A-Za-z0-9:._/-]{1,100}$", "the name of a scope, like email")


_NO_SPACES = describe_pattern(r"^[\x21-\x7e]+$", "printable characters without spaces")


_ISSUER = describe_pattern(r"^https?://[\x21-\x7e]+$", "an address like https://accounts.example.com")


_VERIFIER = describe_pattern(r"^[A-Za-z0-9._~-]{43,128}$", "a PKCE verifier: 43 to 128 letters, digits and . _ ~ -")


ScopeName = Annotated[str, StringConstraints(pattern=_SCOPE)]


ClientSecret = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=_NO_SPACES)]


def _with_openid(scopes: list[str]) -> list[str]:
    return scopes if "openid" in scopes else ["openid", *scopes]


Scopes = Annotated[list[ScopeName], Field(max_length=20), AfterValidator(_with_openid)]


class CreateProvider(Input):
    name: Title
    issuer: Annotated[str, StringConstraints(max_length=300, pattern=_ISSUER)]
    client_id: Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_NO_SPACES)]
    client_secret: ClientSecret | None = Field(default=None, repr=False, description="of a confidential client")
    email_domains: list[Domain] = Field(default=[], max_length=50, description="empty: every verified address")
    scopes: Scopes = Field(default_factory=lambda: ["openid", "email", "profile"])
    default_role: Id | None = Field(default=None, description="of new users, in the tenant; none: invited users only")


class UpdateProvider(Input):
    name: Title | None = None
    client_secret: ClientSecret | None = Field(
        default=None, repr=False, description="null: a public client from now on"
    )
    email_domains: Annotated[list[Domain], Field(max_length=50)] | None = None
    scopes: Scopes | None = None
    default_role: Id | None = Field(default=None, description="null: invited users only from now on")


class ProviderView(View):
    id: str
    name: str
    issuer: str
    client_id: str
    confidential: bool
    email_domains: list[str]
    scopes: list[str]
    default_role: str | None = None
    callback_url: str = Field(description="register it at the provider as redirect URI")
    start_url: str = Field(description="where a browser starts to sign in")
    created_at: Moment


class RedeemCode(Input):
    code: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(repr=False)
    verifier: Annotated[str, StringConstraints(pattern=_VERIFIER)] = Field(repr=False)


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


class SignInWayView(View):
    name: str
    start_url: str = Field(description="where a browser starts to sign in")


class SignInWaysView(View):
    items: list[SignInWayView]


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
