"""A certificate for one machine of an instance: five minutes, one principal. For a claimed operation, to look at a
running instance between operations, or for a person; the callers have checked which of the three it is."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from ..capacity.errors import NodeSuspended
from ..capacity.reads import allocations_by_id
from ..capacity.trust import LOGIN_USER, host_authorities
from ..custody import authorities, grants
from ..custody.vault import Vault
from . import schemas
from .errors import AllocationNotOfOperation
from .reads import members_of
from .transitions import instance_facts
from .work import Work

OPERATION, OBSERVATION, PERSON = "operation", "observation", "person"
OPENS_S = authorities.USER_CERTIFICATE_S


def grant(
    ctx: Context,
    vault: Vault,
    instance: Row[Any],
    row: Work,
    body: schemas.AskKeyAccess,
    *,
    purpose: str = OPERATION,
) -> schemas.GrantView:
    """`row`: the operation it is given for, or whose result is looked at."""
    on = {member.allocation_id for member in members_of(ctx.tx, instance.id)}
    allocation = allocations_by_id(ctx.tx, instance.project_id, [body.allocation_id]).get(body.allocation_id)
    if body.allocation_id not in on or allocation is None or allocation.state == "released":
        raise AllocationNotOfOperation(f"{body.allocation_id!r} is not an allocation of this instance.")
    if allocation.node_state == "suspended":
        raise NodeSuspended(f"The machine {allocation.node_name!r} is suspended; nobody is let onto it.")
    of = {"operation_id": row.id, "claim_epoch": row.claim_epoch, "allocation_id": allocation.id}
    given = certify(
        ctx,
        vault,
        allocation,
        body,
        principal=allocation.id,
        key_id=f"{row.id}/{row.claim_epoch}",
        book=of | {"purpose": purpose},
    )
    ctx.emit("apps.access.granted", given.id, instance_facts(instance) | of | {"grant_id": given.id})
    return given


def certify(
    ctx: Context,
    vault: Vault,
    allocation: Row[Any],
    body: schemas.AskCertificate,
    *,
    principal: str,
    key_id: str,
    book: Mapping[str, Any],
) -> schemas.GrantView:
    """Signed, and written into the book of grants. `key_id`: what the machine's log says, `who/epoch`."""
    certificate = authorities.sign_user(
        ctx.tx,
        vault,
        allocation.tenant_id,
        key_line=body.ssh_public_key,
        principal=principal,
        key_id=key_id,
        now=ctx.now,
        source_addresses=body.source_addresses,
    )
    authorities.signing(ctx.tx, allocation.tenant_id, authorities.HOST)  # held: what is told here is on record in time
    hosts = host_authorities(ctx.tx, allocation.tenant_id)
    told = {"host_authority": max(one.number for one in hosts)}
    told |= {"source_addresses": ",".join(body.source_addresses) or None}
    return schemas.GrantView(
        id=grants.record(ctx, certificate, **book, **told),
        allocation_id=allocation.id,
        principal=principal,
        certificate=certificate.text,
        expires_in_s=certificate.lives_s,
        address=allocation.address,
        port=allocation.ssh_port,
        login_user=LOGIN_USER,
        host_ca_public_key=hosts[-1].public_key,
        host_ca_public_keys=[one.public_key for one in hosts],
        host_principal=allocation.node_id,
    )
