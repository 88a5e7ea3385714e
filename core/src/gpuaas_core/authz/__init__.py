"""Who may do what: permission keys and roles as data, one evaluator, and the context of a verified caller."""
