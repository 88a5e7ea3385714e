"""Tasks: the few things the platform may ask a machine's agent to do, typed, signed and reported on."""
