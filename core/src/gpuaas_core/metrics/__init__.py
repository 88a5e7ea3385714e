"""Prometheus metrics, served on a separate address."""
