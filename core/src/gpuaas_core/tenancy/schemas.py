"""What tenancy takes in and shows."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from ..kit.wire import Id, Input, Moment, Slug, Title, View, Whole, describe_pattern

_EMAIL = describe_pattern(r"^[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,180}$", "an e-mail address like you@example.com")


def _fits(email: str) -> str:
    if len(email) > 254:  # some letters become two when made small
        raise ValueError("an e-mail address has at most 254 characters")
    return email


Email = Annotated[str, StringConstraints(pattern=_EMAIL, to_lower=True), AfterValidator(_fits)]


class SignIn(Input):
    email: Email
    password: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    tenant: Slug | None = Field(default=None, description="needed only if the address has accounts in several tenants")


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
    email_domains: list[Domain] = Field(default=[], max_length=50, description="none: every verified address")
    scopes: Scopes = Field(default_factory=lambda: ["openid", "email", "profile"])
    default_role: Id | None = Field(default=None, description="of newcomers, in the tenant; none: invited people only")


class UpdateProvider(Input):
    name: Title | None = None
    client_secret: ClientSecret | None = Field(
        default=None, repr=False, description="null: a public client from now on"
    )
    email_domains: Annotated[list[Domain], Field(max_length=50)] | None = None
    scopes: Scopes | None = None
    default_role: Id | None = Field(default=None, description="null: invited people only from now on")


class ProviderView(View):
    id: str
    name: str
    issuer: str
    client_id: str
    confidential: bool
    email_domains: list[str]
    scopes: list[str]
    default_role: str | None = None
    callback_url: str = Field(description="register it at the provider as redirect address")
    start_url: str = Field(description="where a browser begins to sign in")
    created_at: Moment


class RedeemCode(Input):
    code: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(repr=False)
    verifier: Annotated[str, StringConstraints(pattern=_VERIFIER)] = Field(repr=False)


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
    current: bool = Field(description="whether this very request uses it")
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


class CreateBinding(Input):
    principal_id: Id
    role: Id
    project_id: Id | None = None


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


_WORD = describe_pattern(r"^[A-Za-z0-9._:/#-]{1,80}$", "1 to 80 letters, digits and . _ : / # -")
Word = Annotated[str, StringConstraints(pattern=_WORD)]
Reason = Annotated[str, StringConstraints(min_length=3, max_length=400, pattern=r"^[^\x00-\x1f\x7f]+$")]
PermissionKey = Annotated[str, StringConstraints(min_length=3, max_length=80)]


class CreateRole(Input):
    name: Slug
    permissions: list[PermissionKey] = Field(min_length=1, max_length=100)


class RoleView(View):
    name: str
    permissions: list[str]
    bindable_at: list[str]
    system: bool = Field(description="the platform's; otherwise the tenant's own")


class CreateDeny(Input):
    permissions: list[PermissionKey] = Field(
        min_length=1, max_length=100, description="keys, or families like `apps.*`"
    )
    reason: Reason


class CreateTenantDeny(CreateDeny):
    project_id: Annotated[str, StringConstraints(max_length=40)] | None = None


class DenyView(View):
    id: str
    scope_kind: str
    scope_id: str
    permissions: list[str]
    reason: str
    created_by: str
    created_at: Moment


class CreateDelegation(Input):
    grantee_id: Id = Field(description="a service account of this or another project of the tenant")
    permissions: list[PermissionKey] = Field(min_length=1, max_length=100, description="keys you hold here")
    subject: Word | None = Field(default=None, description="what it is for, such as a runtime's id; said, not checked")
    reason: Reason
    expires_in_s: Whole = Field(ge=60, le=90 * 24 * 3600, description="at most 90 days")


class DelegationView(View):
    id: str
    project_id: str
    grantor_id: str
    grantee_id: str
    permissions: list[str]
    effective: list[str] = Field(description="what it gives now: what the grantor has lost is not in it")
    subject: str | None = None
    reason: str
    state: str = Field(description="active, revoked or expired")
    expires_at: Moment
    revoked_at: Moment | None = None
    revoked_by: str | None = None
    created_at: Moment


class OpenBreakGlass(Input):
    tenant_id: Id
    mode: Literal["look", "operate"] = Field(description="what each gives: `break_glass` in contracts/permissions.json")
    reason: Reason = Field(description="the tenant reads it")
    ticket: Word
    minutes: Whole = Field(ge=1, le=60)


class BreakGlassView(View):
    id: str
    tenant_id: str
    mode: str
    state: str = Field(description="awaiting_approval, active, closed or expired")
    reason: str
    ticket: str
    minutes: int
    opened_by: str
    approved_by: str | None = None
    closed_by: str | None = None
    created_at: Moment
    active_at: Moment | None = None
    expires_at: Moment
    ended_at: Moment | None = None


class MatchedRule(View):
    kind: str = Field(description="binding, delegation, break_glass or deny")
    id: str
    role: str | None = None
    scope_kind: str
    scope_id: str
    reason: str = ""


class ExplainView(View):
    principal_id: str
    principal_name: str
    permission: str
    scope_kind: str
    scope_id: str
    allowed: bool
    visible: bool = Field(description="if not allowed: whether the answer is 403 (seen) or 404 (not even seen)")
    decided_by: str = Field(description="containment, deny, binding, delegation, break_glass, everybody, default")
    reason: str
    matched: list[MatchedRule]
    roles_that_hold_it: list[str] = Field(description="roles that can be bound here and hold the permission")


class PermissionsView(View):
    scope_kind: str
    scope_id: str
    permissions: list[str] = Field(description="the keys that the caller holds there, in order")


class SignInWayView(View):
    name: str
    start_url: str = Field(description="where a browser begins to sign in")


class SignInWaysView(View):
    items: list[SignInWayView]


class ProjectMemberView(View):
    principal_id: str
    kind: str
    name: str
    email: str | None = None
    disabled: bool
    role: str
    scope_kind: str = Field(description="where the role comes from: this project, or its whole tenant")
    scope_id: str
    binding_id: str


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
