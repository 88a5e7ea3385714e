"""Errors of tenancy and sign-in."""

from ..access.context import Denied
from ..kit.problems import Problem


class SignInRefused(Problem):
    status, code, title = 401, "sign_in_refused", "E-mail or password is wrong"
    way_out = "Check both and try again; an administrator of your tenant can create a new account."


class AssertionRefused(Problem):
    status, code, title = 401, "assertion_refused", "The client assertion was not accepted"
    way_out = (
        "Sign a fresh JWT (EdDSA or ES256, at most 60 s, new jti, aud = the issuer in GET /v1) with the registered key."
    )


class SlugTaken(Problem):
    status, code, title = 409, "slug_taken", "This short name is taken"
    way_out = "Choose another slug."


class EmailTaken(Problem):
    status, code, title = 409, "email_taken", "This e-mail address already has an account"
    way_out = "Bind a role to the existing account instead."


class RoleNotBindable(Problem):
    status, code, title = 422, "role_not_bindable", "This role cannot be bound here"
    way_out = "Choose a role that exists for this scope: see contracts/permissions.json."


class GrantExceedsOwn(Denied):
    status, code, title = 403, "grant_exceeds_own", "Nobody grants what they do not hold"
    way_out = "Ask somebody who holds these permissions to bind the role."


class KeyNotAccepted(Problem):
    status, code, title = 422, "public_key_not_accepted", "The public key cannot be used"
    way_out = "Send a public JWK: kty OKP with crv Ed25519, or kty EC with crv P-256, without the private part."
