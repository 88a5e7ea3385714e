"""Read-only checks of the database's invariants: doctor, audit verify."""
