"""Issues SSH certificates for the machine of an allocation and records the access grants. Callers have checked the
permission."""

from collections.abc import Collection

from ..authz.context import Context
from ..capacity.errors import NodeSuspended
from ..capacity.reads import find_allocation
from ..capacity.rows import PlacedAllocationRow
from ..custody.vault import Vault
from . import authorities, grants, schemas
from .errors import AllocationNotOfOperation
from .host_trust import LOGIN_USER, host_authorities
from .rows import Reason


def allocation_serving(ctx: Context, serving: Collection[str], allocation_id: str) -> PlacedAllocationRow:
    """Return the allocation if it is one of `serving`, the allocations of the target. Raises AllocationNotOfOperation
    if it is not or was released, and NodeSuspended if its node is suspended."""
    allocation = find_allocation(ctx.tx, allocation_id) if allocation_id in serving else None
    if allocation is None or allocation.state == "released":
        raise AllocationNotOfOperation(f"{allocation_id!r} is not an allocation of this target.")
    check_enterable(allocation)
    return allocation


def check_enterable(allocation: PlacedAllocationRow) -> None:
    if allocation.node_state == "suspended":
        raise NodeSuspended(f"The machine {allocation.node_name!r} is suspended: no certificate opens it.")


def give(
    ctx: Context,
    vault: Vault,
    allocation: PlacedAllocationRow,
    body: schemas.AskCertificate,
    reason: Reason,
    *,
    principal: str | None = None,
    key_id: str | None = None,
    lives_s: int = authorities.USER_CERTIFICATE_S,
    ends_at: int | None = None,
) -> schemas.GrantView:
    """Sign a certificate for the SSH key in `body`, record the access grant, and return the grant with the certificate.

    `principal` is the SSH principal, by default the allocation id, with which controllers log in; people have another
    one. `key_id` has the form `holder/epoch`, by default operation and claim epoch: the machine logs it, and fences
    older epochs by it.
    """
    name = principal or allocation.id
    certificate = authorities.sign_user(
        ctx.tx,
        vault,
        allocation.tenant_id,
        key_line=body.ssh_public_key,
        principal=name,
        key_id=key_id or f"{reason.operation_id}/{reason.claim_epoch}",
        now=ctx.now,
        source_addresses=body.source_addresses,
        lives_s=lives_s,
    )
    authorities.signing(ctx.tx, allocation.tenant_id, authorities.HOST)  # locked until this grant is on record
    hosts = host_authorities(ctx.tx, allocation.tenant_id)
    grant_id = grants.record(
        ctx,
        certificate,
        reason,
        allocation_id=allocation.id,
        host_authority=max(host.number for host in hosts),
        source_addresses=body.source_addresses,
        ends_at=ends_at,
    )
    return schemas.GrantView(
        id=grant_id,
        allocation_id=allocation.id,
        principal=name,
        certificate=certificate.text,
        expires_in_s=certificate.lives_s,
        address=allocation.address,
        port=allocation.ssh_port,
        login_user=LOGIN_USER,
        host_ca_public_key=hosts[-1].public_key,
        host_ca_public_keys=[host.public_key for host in hosts],
        host_principal=allocation.node_id,
    )
