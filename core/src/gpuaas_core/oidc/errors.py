"""Errors of identity providers and of sign-in through them."""

from ..kit.problems import Problem


class OidcRefused(Problem):
    status, code, title = 401, "oidc_refused", "The identity provider's token was rejected"
    way_out = "Sign in again. If the sign-in fails again, ask a tenant administrator to check the identity provider."


class OidcStateInvalid(Problem):
    status, code, title = 401, "oidc_state_invalid", "This sign-in cannot be completed"
    way_out = "Sign in again, and finish in the same browser within ten minutes."


class IssuerNotAccepted(Problem):
    status, code, title = 422, "issuer_not_accepted", "Invalid issuer address"
    way_out = "Send the issuer as an https address, exactly as in the provider's metadata."


class IssuerUnreachable(Problem):
    status, code, title = 502, "issuer_unreachable", "The identity provider cannot be reached"
    way_out = "Retry. If retries fail, ask an administrator of the tenant to check the identity provider."
    retryable = True


class DomainsNeeded(Problem):
    status, code, title = 422, "email_domains_needed", "A default role requires e-mail domains"
    way_out = "Send the `email_domains` whose users get the role; or omit `default_role` and invite users."
