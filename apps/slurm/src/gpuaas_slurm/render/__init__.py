"""Pure functions from plan and host facts to the text of files. Golden copies for review: tests/golden."""

from gpuaas_slurm.render.files import File, cluster_files

__all__ = ["File", "cluster_files"]
