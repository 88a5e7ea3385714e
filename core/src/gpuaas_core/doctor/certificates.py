"""Checks of SSH certificates and authorities: no certificate is valid for too long or was issued without a claim, and
no retired authority keeps its private key or is still in use."""

from sqlalchemy import and_, case, exists, or_, select

from ..capacity.tables import nodes
from ..instances.access import OBSERVATION
from ..machine_access.authorities import OBSERVER_CERTIFICATE_S
from ..machine_access.tables import access_grants, ssh_authorities
from ..operations.access import OPERATION
from ..operations.tables import operations
from ..operations.watchdog import KEPT_DAYS
from .findings import Patient, Violation, each

LONGEST_MS = 15 * 60 * 1000


def certificates(patient: Patient) -> list[Violation]:
    g = access_grants.c
    longest = case((g.purpose == OBSERVATION, OBSERVER_CERTIFICATE_S * 1000), else_=LONGEST_MS)
    query = select(g.id, g.created_at, g.expires_at).where(
        or_(g.expires_at - g.created_at > longest, g.expires_at < g.created_at, g.created_at > patient.now + LONGEST_MS)
    )
    way_out = "Release the allocation: the host then rejects all certificates for it."
    lived = each(patient.rows(query), lambda row: f"{row.id} lives longer than its purpose allows.", way_out)
    owner = and_(operations.c.id == g.operation_id, operations.c.claim_epoch >= g.claim_epoch)
    # Operations are deleted 30 days after they ended; access to observe may be given long after that.
    claimed = (g.purpose == OPERATION) & (g.created_at > patient.now - KEPT_DAYS * 24 * 3600 * 1000)
    query = select(g.id, g.operation_id).where(claimed, ~exists().where(owner))
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
