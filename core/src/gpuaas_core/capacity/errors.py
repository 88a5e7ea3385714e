"""Errors of nodes, allocations, quotas, regions, SKUs and pools."""

from ..kit.problems import Problem


class MachineHeld(Problem):
    status, code, title = 409, "machine_held", "This machine is already enrolled as a node with an allocation"
    way_out = "Keep the node with `gpuaas node readmit`, or release its allocation and enrol the machine again."


class NodeSuspended(Problem):
    status, code, title = 409, "node_suspended", "Node suspended: its identity was copied"
    way_out = "Find the copy. Then give the node a new identity (`gpuaas node readmit NAME --reason …`), or retire it."


class NodeNameTaken(Problem):
    status, code, title = 409, "node_name_taken", "Node name already in use"
    way_out = "Choose another name, enrol that node again (`gpuaas node readmit NAME`), or retire it first."


class NodeNotReady(Problem):
    status, code, title = 409, "node_not_ready", "Node not ready"
    way_out = "Wait until the node reports (`gpuaas node list`), or choose another node."


class NodeTaken(Problem):
    status, code, title = 409, "node_taken", "Node already held by an allocation"
    way_out = "Release that allocation first, or choose another node."


class AllocationInUse(Problem):
    status, code, title = 409, "allocation_in_use", "Allocation in use"
    way_out = "Decommission the instance that uses it first, or choose another allocation."


class NodeHeld(Problem):
    status, code, title = 409, "node_held", "Node held by an allocation"
    way_out = "Release that allocation first (`gpuaas allocation release`). Only a free node can be retired."


class CapacityShort(Problem):
    status, code, title = 409, "capacity_short", "Not enough free nodes of this kind"
    way_out = "Request fewer nodes or another kind, or retry later. `capacity` has the number available now."


class QuotaExceeded(Problem):
    status, code, title = 409, "quota_exceeded", "Quota exceeded"
    way_out = "Release unused allocations, or ask a tenant administrator to raise the quota. `quota` has the figures."


class SchedulerTypeUnknown(Problem):
    status, code, title = 422, "scheduler_type_unknown", "Unknown scheduler type"
    way_out = "Omit it, or use a type that an app of the catalog declares; `detail` lists them."


class NameTaken(Problem):
    status, code, title = 409, "name_taken", "Name already in use"
    way_out = "Choose another name, or use the existing resource."


class StillUsed(Problem):
    status, code, title = 409, "still_used", "Still in use by a node"
    way_out = "Retire the node or remove it from the pool first, or wait until its enrolment expires (ten minutes)."
