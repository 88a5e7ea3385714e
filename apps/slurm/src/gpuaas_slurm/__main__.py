"""`python -m gpuaas_slurm` is the same program as `gpuaas-slurm`."""

from gpuaas_slurm.cli import main

if __name__ == "__main__":
    main()
