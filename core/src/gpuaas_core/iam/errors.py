"""Errors of roles, role bindings, deny rules, delegations and break-glass."""

from ..authz.context import Denied
from ..kit.problems import Problem


class RoleNotBindable(Problem):
    status, code, title = 422, "role_not_bindable", "This role cannot be bound here"
    way_out = "Choose a role that can be bound at this level: `gpuaas iam roles` lists them."


class GrantExceedsOwn(Denied):
    status, code, title = 403, "grant_exceeds_own", "You cannot grant a permission you do not have"
    way_out = "Ask an administrator who has these permissions to grant them."


class OperatorAppointmentNeeded(Denied):
    status, code, title = 403, "operator_appointment_needed", "Only a tenant administrator can appoint operators"
    way_out = "Ask an administrator of the tenant: an operator has root on the nodes of its instances."


class NotLendable(Problem):
    status, code, title = 422, "permission_not_lendable", "This permission cannot be delegated"
    way_out = (
        "Delegate other permissions: `unlendable` in contracts/permissions.json lists those that cannot be delegated."
    )


class SecondPersonNeeded(Denied):
    status, code, title = 403, "second_person_needed", "A second administrator must approve this"
    way_out = "Ask another platform administrator to approve it."


class PermissionUnknown(Problem):
    status, code, title = 422, "permission_unknown", "Unknown permission"
    way_out = "`gpuaas iam permissions` lists your permissions; a deny rule also accepts a family like `apps.*`."


class Undeniable(Problem):
    status, code, title = 422, "permission_undeniable", "This permission cannot be denied"
    way_out = "Deny other permissions: a rule that denies this one could never be removed."


class RoleTaken(Problem):
    status, code, title = 409, "role_taken", "This role name is taken"
    way_out = "Choose another name, or delete the old role after its bindings are removed."


class RoleInUse(Problem):
    status, code, title = 409, "role_in_use", "The role is still bound"
    way_out = "Remove its bindings first: GET /v1/tenants/{tenant_id}/role-bindings shows them."
