"""The agent that runs on every enrolled host. Standard library and python3-cryptography only."""

__version__ = "0.1.0"
