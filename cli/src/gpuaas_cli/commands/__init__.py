"""The commands, one module per noun; only the module of the requested command is loaded."""
