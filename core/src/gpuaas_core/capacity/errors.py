"""Errors of capacity."""

from ..kit.problems import Problem


class EnrolmentTokenInvalid(Problem):
    """`reused`: the id of the enrolment, where the token is a real one that another machine has used."""

    status, code, title = 401, "enrolment_token_invalid", "The enrolment token is not accepted"
    way_out = "Ask for a new token (POST /v1/tenants/{id}/enrolments): each works once and for ten minutes."

    def __init__(self, detail: str, *, reused: str | None = None) -> None:
        super().__init__(detail)
        self.reused = reused


class MachineHeld(Problem):
    status, code, title = 409, "machine_held", "This machine is enrolled already, and held"
    way_out = "Keep it as it is with `gpuaas node readmit`, or release its allocation and enrol it again."


class NodeSuspended(Problem):
    status, code, title = 409, "node_suspended", "The machine is suspended: its identity was copied"
    way_out = (
        "Find the copy; then `gpuaas node readmit NAME --reason …` gives the machine a new identity, or retire it."
    )


class NodeNameTaken(Problem):
    status, code, title = 409, "node_name_taken", "The tenant has a machine with this name"
    way_out = "Choose another name, enrol that machine again (`gpuaas node readmit NAME`), or retire it first."


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


class AuthorityRotates(Problem):
    status, code, title = 409, "authority_rotates", "This SSH authority is being rotated already"
    way_out = "Wait until the rotation is over (`gpuaas ssh-authority list`), or take its next step (`… finish`)."


class AuthorityInUse(Problem):
    status, code, title = 409, "authority_in_use", "Somebody still needs the old SSH authority"
    way_out = "Wait for those in `waits_for`, or send `force`: they are locked out until they have caught up."


class StillUsed(Problem):
    status, code, title = 409, "still_used", "There is a machine that has this"
    way_out = "Retire the machine or take it out of the pool first, or let its invitation end (ten minutes)."
