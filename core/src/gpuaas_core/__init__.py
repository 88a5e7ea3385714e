"""The GPUaaS platform core. Apps reach it through its public API and nothing else."""

__version__ = "0.1.0"
