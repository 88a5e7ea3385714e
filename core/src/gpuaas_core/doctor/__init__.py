"""Read-only checks of invariants in the database: `gpuaas-core doctor` and `audit verify`."""
