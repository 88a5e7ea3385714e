"""What should happen next, per kind of operation. A reconcile reads the whole state, acts, and never sleeps."""
