"""The only door to Slurm's own commands: how they are called (shell) and how their answers are read (parse)."""
