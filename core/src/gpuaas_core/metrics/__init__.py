"""Numbers for Prometheus, served on an address of their own."""
