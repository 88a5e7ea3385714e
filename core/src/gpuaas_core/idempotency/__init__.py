"""Idempotency keys: the stored answer of a mutation, written in the transaction of the mutation."""
