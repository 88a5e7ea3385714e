"""Authentication of users, service accounts and nodes: passwords, keys, sessions and invitations."""
