"""Tasks: signed requests of the platform to this host. `follow.py` has the task thread, `acts/` a module per task
kind."""
