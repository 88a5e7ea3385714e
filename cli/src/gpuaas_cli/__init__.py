"""The command line of GPUaaS. It uses the platform only through the SDK."""

__version__ = "0.1.0"
