"""Errors of sign-in, accounts and keys."""

from ..kit.problems import Problem


class SignInRefused(Problem):
    status, code, title = 401, "sign_in_refused", "E-mail or password is wrong"
    way_out = "Check both and try again, with `tenant` if you have several accounts; your administrator can invite you."


class TenantNeeded(Problem):
    status, code, title = 409, "tenant_needed", "Which of your accounts?"
    way_out = "Send the short name of your tenant as `tenant` too."


class OidcRefused(Problem):
    status, code, title = 401, "oidc_refused", "The identity provider's word was not accepted"
    way_out = "Begin again; if it stays, ask an administrator of your tenant to look at the identity provider."


class OidcStateInvalid(Problem):
    status, code, title = 401, "oidc_state_invalid", "This sign-in cannot be completed"
    way_out = "Begin again, in one browser and within ten minutes."


class IssuerNotAccepted(Problem):
    status, code, title = 422, "issuer_not_accepted", "The address of the identity provider cannot be used"
    way_out = "Give the issuer as an https address, exactly as the provider writes it."


class IssuerUnreachable(Problem):
    status, code, title = 502, "issuer_unreachable", "The identity provider cannot be reached"
    way_out = "Try again; if it stays, an administrator of the tenant should look at the identity provider."
    retryable = True


class DomainsNeeded(Problem):
    status, code, title = 422, "email_domains_needed", "A role for newcomers needs e-mail domains"
    way_out = "Name the `email_domains` whose people get it, or leave `default_role` out and invite people."


class AssertionRefused(Problem):
    status, code, title = 401, "assertion_refused", "The client assertion was not accepted"
    way_out = (
        "Sign a fresh JWT (EdDSA or ES256, at most 60 s, new jti, aud = the issuer in GET /v1) with the registered key."
    )


class EmailTaken(Problem):
    status, code, title = 409, "email_taken", "This e-mail address already has an account"
    way_out = "Bind a role to the existing account instead."


class KeyNotAccepted(Problem):
    status, code, title = 422, "public_key_not_accepted", "The public key cannot be used"
    way_out = "Send a public JWK: kty OKP with crv Ed25519, or kty EC with crv P-256, without the private part."


class TooManyGuesses(Problem):
    status, code, title = 429, "too_many_guesses", "Too many wrong passwords"
    way_out = "Wait as long as Retry-After says, then try again."
    retryable = True


class PasswordWrong(Problem):
    status, code, title = 422, "password_wrong", "The present password is not right"
    way_out = "Send your present password in `current_password`."


class NotYourself(Problem):
    status, code, title = 409, "not_yourself", "Nobody disables themselves"
    way_out = "Ask another administrator of the tenant."


class TooManyKeys(Problem):
    status, code, title = 409, "too_many_keys", "The service account has as many keys as it may have"
    way_out = "Retire a key that is no longer used: the list of keys shows when each was used last."


class KeyTaken(Problem):
    status, code, title = 409, "public_key_taken", "The account has this key already"
    way_out = "Make a new key pair; a retired key is not taken back."


class InvitationInvalid(Problem):
    status, code, title = 401, "invitation_invalid", "The invitation cannot be used"
    way_out = "Ask whoever invited you for a new one."


_AGAIN = "Run `gpuaas node readmit NAME --reason …` and the line it prints on the machine; or retire it."


class IdentityUnknown(Problem):
    status, code, title = 401, "identity_unknown", "The platform does not know this key of the machine"
    way_out = "The agent tries its former key by itself. Does that not help: " + _AGAIN


class IdentityExpired(Problem):
    status, code, title = 401, "identity_expired", "The machine's identity has expired"
    way_out = "The agent renews it by itself (POST /v1/renew-identity), also after days: its key was never superseded."


class IdentityClosed(Problem):
    status, code, title = 401, "identity_closed", "The machine's identity is closed"
    way_out = _AGAIN


class IdentitySuperseded(Problem):
    """A former key was shown. Late or copied? Only who answers the challenge still lives by that key."""

    status, code, title = 401, "identity_superseded", "A newer key of this machine is in use"
    way_out = "Use the newer key. Without it, sign `challenge` into an assertion: the machine then counts as copied."

    def __init__(self, node_id: str, key_id: str, detail: str, challenge: str) -> None:
        super().__init__(detail, extra={"challenge": challenge})
        self.node_id, self.key_id = node_id, key_id


class IdentityCloned(Problem):
    status, code, title = 401, "identity_cloned", "Two machines use the identity of one"
    way_out = "Find the copy and switch it off. Then: " + _AGAIN

    def __init__(self, node_id: str, key_id: str, detail: str) -> None:
        super().__init__(detail)
        self.node_id, self.key_id = node_id, key_id
