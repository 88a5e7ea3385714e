"""The agent: the platform's small foot on a host. Standard library and python3-cryptography only."""

__version__ = "0.1.0"
