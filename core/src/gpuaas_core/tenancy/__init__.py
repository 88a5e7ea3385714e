"""Tenants, projects, people, service accounts, role bindings, sign-in."""
