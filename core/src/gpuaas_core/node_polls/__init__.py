"""The long poll of node agents, which is also the heartbeat of the node."""
