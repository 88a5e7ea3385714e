"""Background loops of the core. They are level-triggered: each round reads the rows that need work."""
