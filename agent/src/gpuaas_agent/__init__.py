"""The agent that runs on every enrolled host. It needs only the standard library and python3-cryptography."""

__version__ = "0.1.0"
