"""Events: one dense sequence per tenant, written with the change; lists, streams with resume, and NATS."""
