"""Custody of keys: the vault, data keys per tenant, and the providers that hold the master key."""
