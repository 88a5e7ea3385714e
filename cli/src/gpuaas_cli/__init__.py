"""The command line of GPUaaS. It speaks only through the SDK."""

__version__ = "0.1.0"
