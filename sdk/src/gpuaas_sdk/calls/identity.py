"""Who am I, and how do I get a token. Called by `gpuaas login` and `whoami`."""

from __future__ import annotations

from types import NoneType

from ..call import call
from ..models import AboutView, TokenView, WhoamiView
from ..request import Request, get, post


class IdentityCalls:
    @call
    def about(self) -> Request[AboutView]:
        """Name, version, issuer and features of the platform; needs no token."""
        return Request("GET", "/v1", AboutView, anonymous=True)

    @call
    def sign_in(self, email: str, password: str) -> Request[TokenView]:
        return Request("POST", "/v1/sign-in", TokenView, body={"email": email, "password": password}, anonymous=True)

    @call
    def sign_out(self) -> Request[None]:
        return post(NoneType, "/v1/sign-out")

    @call
    def whoami(self) -> Request[WhoamiView]:
        return get(WhoamiView, "/v1/whoami")
