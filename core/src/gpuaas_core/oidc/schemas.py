"""Requests and responses of identity providers and of sign-in through them."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from ..kit.wire import Id, Input, Moment, Title, View, describe_pattern

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


class SignInWayView(View):
    name: str
    start_url: str = Field(description="where a browser starts to sign in")


class SignInWaysView(View):
    items: list[SignInWayView]
