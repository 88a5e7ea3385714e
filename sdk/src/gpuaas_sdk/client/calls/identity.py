"""The caller's own account: sign-in, tokens, sessions, permissions. Called by `gpuaas login` and `whoami`."""

from __future__ import annotations

from types import NoneType

from ..call import call
from ..models import (
    AboutView,
    ExplainView,
    PermissionsView,
    PrincipalView,
    SessionsEnded,
    SessionView,
    SignInWaysView,
    TokenView,
    WhoamiView,
)
from ..request import Page, Request, get, given, post


class IdentityCalls:
    @call
    def about(self) -> Request[AboutView]:
        """Get name, version, issuer and features of the platform; needs no token."""
        return Request("GET", "/v1", AboutView, anonymous=True)

    @call
    def sign_in(self, email: str, password: str, tenant: str | None = None) -> Request[TokenView]:
        """Sign in with a password. `tenant` (its short name) is needed only if the address has accounts in several
        tenants."""
        body = given(email=email, password=password, tenant=tenant)
        return Request("POST", "/v1/sign-in", TokenView, body=body, anonymous=True)

    @call
    def redeem_oidc_code(self, code: str, verifier: str) -> Request[TokenView]:
        """Exchange the code that an identity provider sent to the browser for a token. A code works once."""
        body = {"code": code, "verifier": verifier}
        return Request("POST", "/v1/auth/oidc/token", TokenView, body=body, anonymous=True, retries=False)

    @call
    def sign_out(self) -> Request[None]:
        return post(NoneType, "/v1/sign-out")

    @call
    def whoami(self) -> Request[WhoamiView]:
        return get(WhoamiView, "/v1/whoami")

    @call
    def accept_invitation(self, token: str, password: str) -> Request[PrincipalView]:
        """Create the account of an invited person. The person can then sign in."""
        body = {"token": token, "password": password}
        return Request("POST", "/v1/invitations/accept", PrincipalView, body=body, anonymous=True, retries=False)

    @call
    def explain_myself(
        self, *, permission: str, project_id: str | None = None, tenant_id: str | None = None
    ) -> Request[ExplainView]:
        """Explain why you may or may not do something: in a project, in a tenant, or on the platform."""
        query = {"permission": permission, "project_id": project_id, "tenant_id": tenant_id}
        return get(ExplainView, "/v1/whoami/explain", **query)

    @call
    def my_permissions(
        self, *, project_id: str | None = None, tenant_id: str | None = None
    ) -> Request[PermissionsView]:
        """List every permission that you have: in a project, in a tenant, or on the platform."""
        return get(PermissionsView, "/v1/whoami/permissions", project_id=project_id, tenant_id=tenant_id)

    @call
    def list_sign_in_ways(self, tenant: str) -> Request[SignInWaysView]:
        """List the identity providers of a tenant (by its short name) for sign-in with a browser; needs no token."""
        return Request("GET", "/v1/auth/providers", SignInWaysView, query={"tenant": tenant}, anonymous=True)

    @call
    def list_sessions(self, *, limit: int | None = None, cursor: str | None = None) -> Request[Page[SessionView]]:
        """List your sessions."""
        return get(Page[SessionView], "/v1/whoami/sessions", limit=limit, cursor=cursor)

    @call
    def revoke_session(self, session_id: str) -> Request[SessionView]:
        return post(SessionView, "/v1/whoami/sessions/{}/revoke", session_id)

    @call
    def change_password(self, *, current_password: str, new_password: str) -> Request[SessionsEnded]:
        """Change your password; all your other sessions end."""
        path = "/v1/whoami/password"
        return post(SessionsEnded, path, current_password=current_password, new_password=new_password)
