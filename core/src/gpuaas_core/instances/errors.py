"""Errors of instances, members and placement."""

from ..kit.problems import Problem


class NameTaken(Problem):
    status, code, title = 409, "name_taken", "The project already has an instance with this name"
    way_out = "Choose another name, or decommission the existing instance first."


class AllocationUnknown(Problem):
    status, code, title = 422, "allocation_unknown", "The project does not have this allocation"
    way_out = (
        "Choose an allocation from `gpuaas allocation list`. Allocations of other projects are also reported as "
        "unknown."
    )


class AllocationNotActive(Problem):
    status, code, title = 409, "allocation_not_active", "The allocation is not active"
    way_out = "Wait until the allocation is active, or choose another allocation from `gpuaas allocation list`."


class PlacementInvalid(Problem):
    status, code, title = 422, "placement_invalid", "The placement does not fit the app"
    way_out = "Place as many members of each component as the app's topology requires (`gpuaas catalog -o json`)."


class TopologyUnknown(Problem):
    status, code, title = 422, "topology_unknown", "Unknown topology"
    way_out = "Choose one of the topologies in the app's manifest."


class OperatingModeRefused(Problem):
    status, code, title = 422, "operating_mode_refused", "This operating mode is not available"
    way_out = "Omit `operating_mode`, or use `tenant_dedicated`; `platform_managed` requires a policy of the platform."


class ChangeRefused(Problem):
    status, code, title = 422, "change_refused", "These inputs cannot be changed after the deploy"
    way_out = "Leave the inputs listed in `errors` unchanged, or deploy another instance with the new values."


class MembersNotReady(Problem):
    status, code, title = 422, "members_not_ready", "Not every member was reported as ready"
    way_out = "Report each member of the instance as ready in `members`, or fail the operation."


class OutcomeConflict(Problem):
    status, code, title = 422, "member_unknown", "This operation cannot report on this member"
    way_out = (
        "Report only members of the claimed operation. Report `removed` only in a decommission, remove or replace."
    )


class AllocationKeptForOther(Problem):
    status, code, title = 409, "allocation_kept_for_other", "The allocation is reserved for another kind of app"
    way_out = "Choose an allocation with the `scheduler_type` of the app, or an allocation without a `scheduler_type`."


class ActionNotSupported(Problem):
    status, code, title = 409, "action_not_supported", "The app does not support this action"
    way_out = (
        "`actions` in the app's manifest lists all actions; `available_actions` of the instance lists those possible "
        "now."
    )


class NothingToRollBack(Problem):
    status, code, title = 409, "nothing_to_roll_back", "There is no earlier version to roll back to"
    way_out = "Only an instance that was upgraded, or whose upgrade failed, can be rolled back."


class VersionUnchanged(Problem):
    status, code, title = 422, "version_unchanged", "The instance already has this version"
    way_out = "Choose another published version of the app (`gpuaas app versions APP`)."


class MachineReports(Problem):
    status, code, title = 409, "machine_reports", "The host still reports to the platform"
    way_out = (
        "Omit `host_is_gone`; or switch the machine off and wait until `gpuaas node list` shows the node as unknown."
    )


class MemberNeeded(Problem):
    status, code, title = 409, "member_needed", "The instance needs this member"
    way_out = "Add another member of the component first, replace this member, or decommission the instance."


class MachineShared(Problem):
    status, code, title = 409, "machine_shared", "The member shares its node with another member"
    way_out = (
        "Drain the member, so that it gets no new work. The member is removed when the instance is decommissioned."
    )


class MachineNotClean(Problem):
    status, code, title = 409, "machine_not_clean", "An earlier instance may have left files or processes on this node"
    way_out = (
        "Inspect and clean the node, then resolve its orphan record (`gpuaas orphan list`, `gpuaas orphan resolve`)."
    )


class GenerationOutdated(Problem):
    status, code, title = 422, "generation_outdated", "The report is about another generation of the instance"
    way_out = "Read the claimed instance again, apply its newest inputs, and report the generation you applied."


class ConditionReserved(Problem):
    status, code, title = 422, "condition_reserved", "This condition is reserved for the platform"
    way_out = "Report a condition with another name; the platform sets `Stuck` itself, from heartbeats and progress."


class NotObservable(Problem):
    status, code, title = 409, "not_observable", "The instance cannot be observed now"
    way_out = "Wait until the running operation of the instance has ended, then read the instance again."


class ObservationOutdated(Problem):
    status, code, title = 409, "observation_outdated", "The instance has changed since it was observed"
    way_out = "Read and observe the instance again, then report the new observation."


class ObserverNotController(Problem):
    status, code, title = 403, "observer_not_controller", "Only an app's controller can observe instances"
    way_out = "Sign in as the service account of the app's controller."


class MemberNotEnterable(Problem):
    status, code, title = 409, "member_not_enterable", "This member's host cannot be accessed now"
    way_out = (
        "Check the state of the member (`gpuaas member show INSTANCE MEMBER`) and of its node "
        "(`gpuaas node show NAME`)."
    )
