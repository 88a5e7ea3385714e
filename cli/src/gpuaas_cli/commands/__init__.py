"""One file per noun; main.py loads only the one that was asked for."""
