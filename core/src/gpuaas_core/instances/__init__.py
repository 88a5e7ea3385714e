"""App instances, their members, and the operations that are the only way to ask for work on them."""
