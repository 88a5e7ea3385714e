"""Errors of nodes, allocations, quotas, regions, SKUs and pools."""

from ..kit.problems import Problem


class MachineHeld(Problem):
    status, code, title = 409, "machine_held", "This machine is already enrolled as a node with an allocation"
    way_out = (
        "To keep the node, run `gpuaas node readmit NAME`. Otherwise release its allocation and enrol the machine "
        "again."
    )


class NodeSuspended(Problem):
    status, code, title = 409, "node_suspended", "Node suspended: its identity was copied"
    way_out = (
        "Find the copied machine. Then give the node a new identity (`gpuaas node readmit NAME --reason …`), or retire "
        "the node."
    )


class NodeNameTaken(Problem):
    status, code, title = 409, "node_name_taken", "Node name already in use"
    way_out = (
        "Choose another name, enrol the existing node again (`gpuaas node readmit NAME`), or retire the existing node."
    )


class NodeNotReady(Problem):
    status, code, title = 409, "node_not_ready", "Node not ready"
    way_out = "Wait until `gpuaas node list` shows the node as ready, or choose another node."


class NodeTaken(Problem):
    status, code, title = 409, "node_taken", "The node is already allocated"
    way_out = "Release the node's allocation first, or choose another node."


class AllocationInUse(Problem):
    status, code, title = 409, "allocation_in_use", "Allocation in use"
    way_out = "Decommission the instance that uses the allocation, or choose another allocation."


class NodeHeld(Problem):
    status, code, title = 409, "node_held", "The node is still allocated"
    way_out = "Release the node's allocation first (`gpuaas allocation release`). Only a free node can be retired."


class CapacityShort(Problem):
    status, code, title = 409, "capacity_short", "Not enough free nodes of this type"
    way_out = (
        "Request fewer nodes or another type, or retry later. `capacity` has the number of nodes that are free now."
    )


class QuotaExceeded(Problem):
    status, code, title = 409, "quota_exceeded", "Quota exceeded"
    way_out = (
        "Release unused allocations, or ask a tenant administrator to raise the quota. `quota` has the limit and the "
        "usage."
    )


class SchedulerTypeUnknown(Problem):
    status, code, title = 422, "scheduler_type_unknown", "Unknown scheduler type"
    way_out = "Omit `scheduler_type`, or use a type that an app in the catalog declares; `detail` lists these types."


class NameTaken(Problem):
    status, code, title = 409, "name_taken", "Name already in use"
    way_out = "Choose another name, or use the existing resource."


class StillUsed(Problem):
    status, code, title = 409, "still_used", "The SKU, region or pool is still in use by a node"
    way_out = (
        "Retire the node, or remove it from the pool; or wait until the enrolment of the node expires (ten minutes)."
    )
