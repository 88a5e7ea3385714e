"""The GPUaaS platform core. Apps use it only through its public API."""

__version__ = "0.1.0"
