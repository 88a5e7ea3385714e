"""Tasks: the platform's typed, signed requests and nothing else. `follow.py` is the thread, `acts/` what is done."""
