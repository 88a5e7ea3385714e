"""The Slurm app of GPUaaS. It has its own process, state and release, and uses the platform only through gpuaas_sdk."""

__version__ = "0.3.0"
APP_SLUG = "slurm"
PROGRAM = "gpuaas-slurm"  # also names the app's folders on hosts and its connections to a database
