"""The audit trail: rows chained by hash, signed checkpoints outside the database, and verification."""
