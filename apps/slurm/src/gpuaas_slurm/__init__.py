"""The Slurm app of GPUaaS: its own process, state and release; it meets the platform only through gpuaas_sdk."""

__version__ = "0.1.0"
APP_SLUG = "slurm"
