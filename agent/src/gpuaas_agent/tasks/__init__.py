"""Tasks: the platform's typed and signed requests. `follow.py` has the task thread, `acts/` one module per kind."""
