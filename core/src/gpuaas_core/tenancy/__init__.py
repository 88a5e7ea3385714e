"""Tenants and their projects."""
