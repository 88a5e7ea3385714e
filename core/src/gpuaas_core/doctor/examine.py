"""The list of invariants, and the function that checks them all.
The first twelve are the platform's published guarantees."""

from . import certificates, holdings, operations
from .findings import Finding, Invariant, Patient

INVARIANTS = [
    Invariant(1, "Every acknowledged operation exists", operations.acknowledged),
    Invariant(2, "Ended operations stay ended", operations.ended),
    Invariant(3, "One claim per operation at a time, with rising epochs", operations.claims),
    Invariant(4, "The events of a tenant have no gap", holdings.event_sequences),
    Invariant(5, "Every change has its event and its audit row", operations.recorded),
    Invariant(6, "The audit chains verify to their last checkpoint", holdings.audit_chains),
    Invariant(7, "Every second of a node has at most one payer", not_yet="usage is not metered"),
    Invariant(8, "No allocation has two owners", holdings.owners),
    Invariant(9, "Every waiting operation and instance can be moved on", operations.waiting),
    Invariant(10, "Used quota is the sum of live allocations", holdings.used_quotas),
    Invariant(11, "Every finalizer has a living owner", not_yet="there are no finalizers; holds are checked by 8"),
    Invariant(12, "No certificate outlives its grant", certificates.certificates),
    Invariant(13, "Nodes applied the trust that the database records", holdings.trust),
    Invariant(14, "Instances, members and operations agree", holdings.agreement),
]


def examine(patient: Patient) -> list[Finding]:
    return [Finding(invariant, invariant.check(patient) if invariant.check else []) for invariant in INVARIANTS]
