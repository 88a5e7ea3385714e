"""Authorization: permission keys and roles as data, the evaluator, and the context of a verified caller."""
