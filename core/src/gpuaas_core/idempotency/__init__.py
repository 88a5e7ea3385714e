"""Idempotency keys: the answer to a change is stored in the transaction of the change, and returned again for a
retry."""
