"""Who am I, and how do I get a token. Called by `gpuaas login` and `whoami`."""

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
        """Name, version, issuer and features of the platform; needs no token."""
        return Request("GET", "/v1", AboutView, anonymous=True)

    @call
    def sign_in(self, email: str, password: str, tenant: str | None = None) -> Request[TokenView]:
        """The tenant's short name is needed only if the address has accounts in several."""
        body = given(email=email, password=password, tenant=tenant)
        return Request("POST", "/v1/sign-in", TokenView, body=body, anonymous=True)

    @call
    def redeem_oidc_code(self, code: str, verifier: str) -> Request[TokenView]:
        """The token for the code a browser brought back from an identity provider; works once."""
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
        """An invited person makes their account; then they sign in."""
        body = {"token": token, "password": password}
        return Request("POST", "/v1/invitations/accept", PrincipalView, body=body, anonymous=True, retries=False)

    @call
    def explain_myself(
        self, *, permission: str, project_id: str | None = None, tenant_id: str | None = None
    ) -> Request[ExplainView]:
        """Why I may or may not do something: in a project, in a tenant, or at the platform."""
        query = {"permission": permission, "project_id": project_id, "tenant_id": tenant_id}
        return get(ExplainView, "/v1/whoami/explain", **query)

    @call
    def my_permissions(
        self, *, project_id: str | None = None, tenant_id: str | None = None
    ) -> Request[PermissionsView]:
        """Every key I hold: in a project, in a tenant, or at the platform."""
        return get(PermissionsView, "/v1/whoami/permissions", project_id=project_id, tenant_id=tenant_id)

    @call
    def list_sign_in_ways(self, tenant: str) -> Request[SignInWaysView]:
        """Through whom people of a tenant (its short name) sign in in a browser; needs no token."""
        return Request("GET", "/v1/auth/providers", SignInWaysView, query={"tenant": tenant}, anonymous=True)

    @call
    def list_sessions(self, *, limit: int | None = None, cursor: str | None = None) -> Request[Page[SessionView]]:
        """Where I am signed in now."""
        return get(Page[SessionView], "/v1/whoami/sessions", limit=limit, cursor=cursor)

    @call
    def revoke_session(self, session_id: str) -> Request[SessionView]:
        return post(SessionView, "/v1/whoami/sessions/{}/revoke", session_id)

    @call
    def change_password(self, *, current_password: str, new_password: str) -> Request[SessionsEnded]:
        """A new password for me; every other session of mine ends."""
        path = "/v1/whoami/password"
        return post(SessionsEnded, path, current_password=current_password, new_password=new_password)
