"""Reads on PostgreSQL whose statements are predicted from earlier requests and sent together, before the read runs."""
