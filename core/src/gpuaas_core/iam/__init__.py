"""Authorization data: principals, roles, role bindings, deny rules, delegations, break-glass, and explanations of
decisions."""
