"""Errors of sign-in, accounts and keys."""

from ..kit.problems import Problem


class SignInRefused(Problem):
    status, code, title = 401, "sign_in_refused", "The e-mail address or the password is wrong"
    way_out = (
        "Check the address and the password; add `tenant` if you have several accounts. If you have none, ask for an "
        "invitation."
    )


class TenantNeeded(Problem):
    status, code, title = 409, "tenant_needed", "Tenant required: you have accounts in several tenants"
    way_out = "Add `tenant` with the short name of the tenant to sign in to."


class AssertionRefused(Problem):
    status, code, title = 401, "assertion_refused", "The client assertion was rejected"
    way_out = (
        "Sign a new JWT with the registered key: algorithm EdDSA or ES256, lifetime at most 60 s, a new `jti`, and as "
        "`aud` the `issuer` of GET /v1."
    )


class EmailTaken(Problem):
    status, code, title = 409, "email_taken", "This e-mail address already has an account"
    way_out = "Bind a role to the existing account instead."


class KeyNotAccepted(Problem):
    status, code, title = 422, "public_key_not_accepted", "Invalid public key"
    way_out = "Send a public JWK: kty OKP with crv Ed25519, or kty EC with crv P-256, without the private part."


class TooManyGuesses(Problem):
    status, code, title = 429, "too_many_guesses", "Too many wrong passwords"
    way_out = "Wait for the number of seconds in the Retry-After header, then retry."
    retryable = True


class PasswordWrong(Problem):
    status, code, title = 422, "password_wrong", "The current password is wrong"
    way_out = "Send your current password in `current_password`."


class NotYourself(Problem):
    status, code, title = 409, "not_yourself", "You cannot disable your own account"
    way_out = "Ask another tenant administrator to disable your account."


class TooManyKeys(Problem):
    status, code, title = 409, "too_many_keys", "Too many keys for this service account"
    way_out = "Retire an unused key: the list of keys shows when each key was last used."


class KeyTaken(Problem):
    status, code, title = 409, "public_key_taken", "This key is already registered"
    way_out = "Create a new key pair. A retired key cannot be registered again."


class InvitationInvalid(Problem):
    status, code, title = 401, "invitation_invalid", "The invitation is not valid"
    way_out = "Ask the person who invited you for a new invitation."


_READMIT = "run `gpuaas node readmit NAME --reason …`, then run the command it prints on the node; or retire the node."


class IdentityUnknown(Problem):
    status, code, title = 401, "identity_unknown", "Unknown node key"
    way_out = "The agent retries with its previous key automatically. If the previous key fails too, " + _READMIT


class IdentityExpired(Problem):
    status, code, title = 401, "identity_expired", "The node's key has expired"
    way_out = (
        "The agent renews the key automatically (POST /v1/renew-identity), even days later, unless a newer key is in "
        "use."
    )


class IdentityClosed(Problem):
    status, code, title = 401, "identity_closed", "The platform no longer accepts this node's identity"
    way_out = _READMIT[0].upper() + _READMIT[1:]


class IdentitySuperseded(Problem):
    """A node key was used after a newer key had replaced it, either by a delayed message or by a copy of the node. Only
    a copy can sign the challenge."""

    status, code, title = 401, "identity_superseded", "A newer key of this node is in use"
    way_out = (
        "Use the newer key. Without the newer key, sign `challenge` in an assertion; the node is then suspended as "
        "copied."
    )

    def __init__(self, node_id: str, key_id: str, detail: str, challenge: str) -> None:
        super().__init__(detail, extra={"challenge": challenge})
        self.node_id, self.key_id = node_id, key_id


class IdentityCloned(Problem):
    status, code, title = 401, "identity_cloned", "Two machines use the identity of one node"
    way_out = "Find the copied machine and shut it down. Then " + _READMIT

    def __init__(self, node_id: str, key_id: str, detail: str) -> None:
        super().__init__(detail)
        self.node_id, self.key_id = node_id, key_id
