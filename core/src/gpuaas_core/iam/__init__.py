"""Authorization data: principals, roles, role bindings, deny rules, delegations, break-glass, and why a caller may."""
