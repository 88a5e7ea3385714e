"""Errors of roles, role bindings, deny rules, delegations and break-glass."""

from ..authz.context import Denied
from ..kit.problems import Problem


class RoleNotBindable(Problem):
    status, code, title = 422, "role_not_bindable", "This role cannot be bound at this level"
    way_out = "Choose another role: `gpuaas iam roles` shows at which level each role can be bound."


class GrantExceedsOwn(Denied):
    status, code, title = 403, "grant_exceeds_own", "You cannot grant a permission you do not have"
    way_out = "Ask an administrator who has these permissions to grant them."


class OperatorAppointmentNeeded(Denied):
    status, code, title = 403, "operator_appointment_needed", "Only a tenant administrator can appoint operators"
    way_out = (
        "Ask a tenant administrator to appoint the operator: an operator has root access to the nodes of its instances."
    )


class NotLendable(Problem):
    status, code, title = 422, "permission_not_lendable", "This permission cannot be delegated"
    way_out = (
        "Delegate other permissions: `unlendable` in contracts/permissions.json lists the permissions to leave out."
    )


class SecondPersonNeeded(Denied):
    status, code, title = 403, "second_person_needed", "A second administrator must approve the request"
    way_out = "Ask another platform administrator to approve the request."


class PermissionUnknown(Problem):
    status, code, title = 422, "permission_unknown", "Unknown permission"
    way_out = (
        "`gpuaas iam permissions` lists your permissions. A deny rule also accepts a prefix with a wildcard: `apps.*`."
    )


class Undeniable(Problem):
    status, code, title = 422, "permission_undeniable", "This permission cannot be denied"
    way_out = "Deny other permissions: a rule that denies this permission could never be removed."


class RoleTaken(Problem):
    status, code, title = 409, "role_taken", "Role name already in use"
    way_out = "Choose another name, or delete the existing role after you have removed its bindings."


class RoleInUse(Problem):
    status, code, title = 409, "role_in_use", "The role is still bound to accounts"
    way_out = "Remove the role's bindings first: `gpuaas iam bindings` lists all role bindings."
