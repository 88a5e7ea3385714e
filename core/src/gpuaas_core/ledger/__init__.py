"""Events, audit rows, and request ids already seen. Written in the same transaction as the change itself."""
