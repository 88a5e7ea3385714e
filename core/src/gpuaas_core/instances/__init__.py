"""App instances, their members, and the operations on them. Every change of an instance or member is an operation."""
