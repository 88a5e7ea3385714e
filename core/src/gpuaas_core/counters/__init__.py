"""The counter row of a tenant: the sequences of its events and audit rows, and the head of its audit chain."""
