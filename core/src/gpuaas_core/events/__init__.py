"""Events: one sequence without gaps per tenant, written in the transaction of the change. Clients read them as lists,
as streams that can be resumed, or through NATS."""
