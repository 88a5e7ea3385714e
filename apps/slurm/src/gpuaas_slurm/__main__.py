"""Runs the program `gpuaas-slurm` as `python -m gpuaas_slurm`."""

from gpuaas_slurm.cli import main

if __name__ == "__main__":
    main()
