"""Certificates and their authorities: no certificate lives too long, lacks its claim, or comes from a retired
authority.
"""

from sqlalchemy import and_, exists, or_, select

from ..capacity.tables import nodes
from ..custody.tables import access_grants, ssh_authorities
from ..operations.tables import operations
from .findings import Patient, Violation, each


def certificates(patient: Patient) -> list[Violation]:
    g, longest = access_grants.c, 15 * 60 * 1000
    query = select(g.id, g.created_at, g.expires_at).where(
        or_(g.expires_at - g.created_at > longest, g.expires_at < g.created_at, g.created_at > patient.now + longest)
    )
    way_out = "Release the allocation: the host then rejects all certificates for it."
    lived = each(patient.rows(query), lambda row: f"{row.id} lives longer than 15 minutes.", way_out)
    owner = and_(operations.c.id == g.operation_id, operations.c.claim_epoch >= g.claim_epoch)
    query = select(g.id, g.operation_id).where(~exists().where(owner))
    unclaimed = each(
        patient.rows(query), lambda row: f"{row.id} was issued for a claim of {row.operation_id} that does not exist."
    )
    return lived + unclaimed + _signers(patient)


def _signers(patient: Patient) -> list[Violation]:
    s = ssh_authorities.c
    query = select(s.tenant_id, s.purpose, s.number).where(s.state == "retired", s.sealed_private_key.is_not(None))
    way_out = "Rotate this tenant's authorities: `gpuaas ssh-authority rotate`, see docs/runbooks/ssh-access.md."
    kept = each(
        patient.rows(query),
        lambda row: f"The retired {row.purpose} authority {row.number} of {row.tenant_id} still has its private key.",
        way_out,
    )
    mine = and_(s.tenant_id == nodes.c.tenant_id, s.purpose == "host", s.number == nodes.c.host_authority)
    trusted = exists().where(mine, s.state != "retired")
    query = select(nodes.c.id, nodes.c.host_authority).where(nodes.c.state != "retired", ~trusted)
    shown = "presents a certificate of the host authority"
    return kept + each(
        patient.rows(query), lambda row: f"{row.id} {shown} {row.host_authority}, which no client trusts.", way_out
    )
