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


class EvidenceNotClean(Problem):
    status, code, title = 422, "teardown_not_clean", "The evidence contains failed checks"
    way_out = "Remove what the failed checks name, check again, and complete; or fail the operation with an error."


class EvidenceMissing(Problem):
    status, code, title = 422, "teardown_evidence_missing", "Teardown evidence is missing"
    way_out = "Send `evidence` with an entry for each allocation the instance was placed on, each with its `checks`."


class EvidenceUnverifiable(Problem):
    status, code, title = 422, "teardown_evidence_unverifiable", "Teardown evidence cannot be verified"
    way_out = (
        "Report `checks` for each allocation: one row per inspected thing, with `check` (its name), `ok` (true or"
        " false) and `detail`. The claim is still yours."
    )


class OutcomeConflict(Problem):
    status, code, title = 422, "member_unknown", "This operation cannot report on this member"
    way_out = "Report only members of the claimed operation; only what removes a member can say that it is gone."


class AllocationKeptForOther(Problem):
    status, code, title = 409, "allocation_kept_for_other", "The allocation is kept for another kind of app"
    way_out = "Choose an allocation with this `scheduler_type` or with none."


class AllocationNotOfOperation(Problem):
    status, code, title = 404, "allocation_not_of_operation", "The claimed operation does not touch this allocation"
    way_out = "Ask for access only to the allocations of the claimed operation's instance."


class ActionNotSupported(Problem):
    status, code, title = 409, "action_not_supported", "The app does not offer this here"
    way_out = "See `actions` in the app's manifest and `available_actions` of the instance for what it offers."


class NothingToRollBack(Problem):
    status, code, title = 409, "nothing_to_roll_back", "There is no version to go back to"
    way_out = "Only an instance that was upgraded, or whose upgrade failed, can go back."


class VersionUnchanged(Problem):
    status, code, title = 422, "version_unchanged", "The instance has this version already"
    way_out = "Name another published version of the app (`gpuaas catalog`)."


class MachineReports(Problem):
    status, code, title = 409, "machine_reports", "The machine is not gone"
    way_out = "Leave host_is_gone out; or switch the machine off and wait until `gpuaas node list` shows it as unknown."


class HostFenced(Problem):
    status, code, title = 409, "host_fenced", "Nobody gets onto this machine any more"
    way_out = "Take the member out without it; when the machine is back, clean it, then resolve its orphan record."


class MemberNeeded(Problem):
    status, code, title = 409, "member_needed", "The instance cannot do without this member"
    way_out = "Add another member of the component first, replace this one, or decommission the instance."


class MachineShared(Problem):
    status, code, title = 409, "machine_shared", "The member shares its machine with another one"
    way_out = "Drain it to keep work away from that machine; it leaves when the instance is decommissioned."


class MachineNotClean(Problem):
    status, code, title = 409, "machine_not_clean", "Something may be left on this machine"
    way_out = "Look at the machine, then resolve its record (`gpuaas orphan list`, `gpuaas orphan resolve`)."


class GenerationOutdated(Problem):
    status, code, title = 422, "generation_outdated", "The report is about another generation of the instance"
    way_out = "Read the claimed instance again, apply its newest inputs, and report the generation you applied."


class ConditionReserved(Problem):
    status, code, title = 422, "condition_reserved", "The platform itself reports this condition"
    way_out = "Report conditions of your own; `Stuck` is worked out from heartbeats and progress."


class NotObservable(Problem):
    status, code, title = 409, "not_observable", "The instance cannot be looked at now"
    way_out = "Wait until the operation that changes it has ended, and read the instance again."


class ObservationOutdated(Problem):
    status, code, title = 409, "observation_outdated", "The instance has changed since it was looked at"
    way_out = "Read the instance again, look at it again, and report what you see then."


class ObserverNotController(Problem):
    status, code, title = 403, "observer_not_controller", "Only an app's controller looks at instances"
    way_out = "Sign in as the service account of the app's controller."


class MemberNotEnterable(Problem):
    status, code, title = 409, "member_not_enterable", "Nobody gets onto this member's machine now"
    way_out = "`gpuaas member show INSTANCE MEMBER` says how it is; `gpuaas node show NAME` says how its machine is."


class GrantOver(Problem):
    status, code, title = 409, "grant_over", "The certificate has expired"
    way_out = "It opens nothing any more. `gpuaas grant list` shows what does."
