"""Identity: who signs in, and how. Users, sessions, passwords, OpenID, invitations, service accounts, node keys."""
