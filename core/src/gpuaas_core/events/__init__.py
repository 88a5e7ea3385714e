"""Events: one dense sequence per tenant, written with the change. Read as lists, as streams with resume, or through
NATS."""
