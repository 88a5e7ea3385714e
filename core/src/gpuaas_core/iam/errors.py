"""Errors of roles, role bindings, deny rules, delegations and break-glass."""

from ..access.context import Denied
from ..kit.problems import Problem


class RoleNotBindable(Problem):
    status, code, title = 422, "role_not_bindable", "This role cannot be bound here"
    way_out = "Choose a role that is given at this level: `gpuaas iam roles` lists them."


class GrantExceedsOwn(Denied):
    status, code, title = 403, "grant_exceeds_own", "Nobody grants what they do not hold"
    way_out = "Ask somebody who holds these permissions to bind the role."


class OperatorAppointmentNeeded(Denied):
    status, code, title = 403, "operator_appointment_needed", "Only a tenant administrator appoints operators"
    way_out = "Ask an administrator of the tenant to do it: an operator is root on the machines of its instances."


class NotLendable(Problem):
    status, code, title = 422, "permission_not_lendable", "This permission cannot be lent"
    way_out = "Lend what the account needs for its work; `unlendable` in contracts/permissions.json says what stays."


class SecondPersonNeeded(Denied):
    status, code, title = 403, "second_person_needed", "Somebody else must approve this"
    way_out = "Ask another platform administrator to approve it."


class PermissionUnknown(Problem):
    status, code, title = 422, "permission_unknown", "There is no such permission"
    way_out = "`gpuaas iam permissions` lists the keys you hold; a deny rule also takes a family like `apps.*`."


class Undeniable(Problem):
    status, code, title = 422, "permission_undeniable", "This permission cannot be denied"
    way_out = "Deny something else: with this rule nobody could lift it again."


class RoleTaken(Problem):
    status, code, title = 409, "role_taken", "The tenant has a role with this name"
    way_out = "Choose another name, or delete the old role once nobody holds it."


class RoleInUse(Problem):
    status, code, title = 409, "role_in_use", "Somebody holds this role"
    way_out = "Remove its bindings first: GET /v1/tenants/{tenant_id}/role-bindings shows them."
