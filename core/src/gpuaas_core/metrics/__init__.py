"""Prometheus metrics, served on an address of their own."""
