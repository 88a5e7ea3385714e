"""Errors of instances, members and placement."""

from ..kit.problems import Problem


class NameTaken(Problem):
    status, code, title = 409, "name_taken", "The project has an instance with this name"
    way_out = "Choose another name, or decommission the other instance first."


class AllocationUnknown(Problem):
    status, code, title = 422, "allocation_unknown", "This allocation is not one of the project's"
    way_out = "Choose from `gpuaas allocation list`; an allocation of another project looks like an unknown one."


class AllocationNotActive(Problem):
    status, code, title = 409, "allocation_not_active", "The allocation cannot be used"
    way_out = "Wait until it is active, or choose another one from `gpuaas allocation list`."


class PlacementInvalid(Problem):
    status, code, title = 422, "placement_invalid", "The placement does not fit the app"
    way_out = "Name the components and numbers the app's topology asks for (`gpuaas catalog -o json`)."


class TopologyUnknown(Problem):
    status, code, title = 422, "topology_unknown", "The app has no such topology"
    way_out = "Choose one of the topologies in the app's manifest."


class OperatingModeRefused(Problem):
    status, code, title = 422, "operating_mode_refused", "This operating mode is not available"
    way_out = "Leave operating_mode out, or use tenant_dedicated; platform_managed needs a platform policy."


class ChangeRefused(Problem):
    status, code, title = 422, "change_refused", "These inputs stay as they were deployed"
    way_out = "Leave the inputs listed in `errors` as they are, or deploy another instance with the new ones."


class MembersNotReady(Problem):
    status, code, title = 422, "members_not_ready", "Not every member was reported ready"
    way_out = "Report each member of the instance as ready in `members`, or fail the operation."


class OutcomeConflict(Problem):
    status, code, title = 422, "member_unknown", "This operation cannot report on this member"
    way_out = "Report only members of the claimed operation; `removed` only in a decommission, removal or replacement."


class AllocationKeptForOther(Problem):
    status, code, title = 409, "allocation_kept_for_other", "The allocation is reserved for another kind of app"
    way_out = "Choose an allocation whose `scheduler_type` is that of the app, or one without a `scheduler_type`."


class ActionNotSupported(Problem):
    status, code, title = 409, "action_not_supported", "Action not supported by the app"
    way_out = "See `actions` in the app's manifest and `available_actions` of the instance for what it offers."


class NothingToRollBack(Problem):
    status, code, title = 409, "nothing_to_roll_back", "There is no version to go back to"
    way_out = "Only an instance that was upgraded, or whose upgrade failed, can go back."


class VersionUnchanged(Problem):
    status, code, title = 422, "version_unchanged", "The instance has this version already"
    way_out = "Name another published version of the app (`gpuaas catalog`)."


class MachineReports(Problem):
    status, code, title = 409, "machine_reports", "The host is not gone"
    way_out = (
        "Leave host_is_gone out; or switch the machine off and wait until `gpuaas node list` shows the node as unknown."
    )


class MemberNeeded(Problem):
    status, code, title = 409, "member_needed", "The instance cannot do without this member"
    way_out = "Add another member of the component first, replace this one, or decommission the instance."


class MachineShared(Problem):
    status, code, title = 409, "machine_shared", "The member shares its node with another member"
    way_out = "Drain the member to keep work away from it; it is removed when the instance is decommissioned."


class MachineNotClean(Problem):
    status, code, title = 409, "machine_not_clean", "Something may be left on this node"
    way_out = "Inspect the node, then resolve its orphan record (`gpuaas orphan list`, `gpuaas orphan resolve`)."


class GenerationOutdated(Problem):
    status, code, title = 422, "generation_outdated", "The report is about another generation of the instance"
    way_out = "Read the claimed instance again, apply its newest inputs, and report the generation you applied."


class ConditionReserved(Problem):
    status, code, title = 422, "condition_reserved", "The platform itself reports this condition"
    way_out = "Report conditions of your own; the platform computes `Stuck` from heartbeats and progress."


class NotObservable(Problem):
    status, code, title = 409, "not_observable", "The instance cannot be observed now"
    way_out = "Wait until the operation that changes it has ended, and read the instance again."


class ObservationOutdated(Problem):
    status, code, title = 409, "observation_outdated", "The instance has changed since it was observed"
    way_out = "Read and observe the instance again, then report the new observation."


class ObserverNotController(Problem):
    status, code, title = 403, "observer_not_controller", "Only an app's controller can observe instances"
    way_out = "Sign in as the service account of the app's controller."


class MemberNotEnterable(Problem):
    status, code, title = 409, "member_not_enterable", "This member's host cannot be accessed now"
    way_out = "`gpuaas member show INSTANCE MEMBER` shows the member's state, `gpuaas node show NAME` the node's."
