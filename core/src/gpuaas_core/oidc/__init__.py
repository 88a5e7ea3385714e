"""Sign-in through OpenID providers: the providers that a tenant trusts, and the sign-in attempts."""
