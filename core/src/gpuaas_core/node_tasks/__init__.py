"""Tasks: typed, signed requests of the platform to a node's agent, with reported results."""
