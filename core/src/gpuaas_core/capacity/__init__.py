"""Capacity: the nodes of tenants, their trust configuration, and their allocation to projects."""
