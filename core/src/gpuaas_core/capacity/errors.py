"""Errors of capacity."""

from ..kit.problems import Problem


class EnrolmentTokenInvalid(Problem):
    status, code, title = 401, "enrolment_token_invalid", "The enrolment token is not accepted"
    way_out = "Ask for a new token (POST /v1/tenants/{id}/enrolments): each works once and for ten minutes."


class NodeNameTaken(Problem):
    status, code, title = 409, "node_name_taken", "The tenant has a machine with this name"
    way_out = "Choose another name, or retire the old machine first."


class NodeNotReady(Problem):
    status, code, title = 409, "node_not_ready", "The machine is not ready"
    way_out = "Wait until the machine reports (`gpuaas node list`), or choose another one."


class NodeTaken(Problem):
    status, code, title = 409, "node_taken", "The machine is held by an allocation already"
    way_out = "Release that allocation first, or choose another machine."


class AllocationInUse(Problem):
    status, code, title = 409, "allocation_in_use", "The allocation is in use"
    way_out = "Decommission the instance that uses it first, or choose another allocation."


class NodeHeld(Problem):
    status, code, title = 409, "node_held", "The machine is held by an allocation"
    way_out = "Release that allocation first (`gpuaas allocation release`); a machine retires empty."


class CapacityShort(Problem):
    status, code, title = 409, "capacity_short", "There are not enough free machines of this kind"
    way_out = "Ask for fewer or another kind, or ask again later: `capacity` says how many can be had now."


class QuotaExceeded(Problem):
    status, code, title = 409, "quota_exceeded", "The project's quota does not allow this"
    way_out = "Release what is not needed, or ask a tenant administrator to raise the quota: `quota` has the figures."


class SchedulerTypeUnknown(Problem):
    status, code, title = 422, "scheduler_type_unknown", "No app declares this scheduler type"
    way_out = "Leave it out, or name what an app of the catalog runs on: `detail` lists what there is."


class NameTaken(Problem):
    status, code, title = 409, "name_taken", "There is one with this name already"
    way_out = "Choose another name, or use the one that is there."


class StillUsed(Problem):
    status, code, title = 409, "still_used", "There is a machine that has this"
    way_out = "Retire the machine or take it out of the pool first, or let its invitation end (ten minutes)."
