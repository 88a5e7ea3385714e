"""Queries for access grants and their views."""

from collections.abc import Collection
from typing import TypeVar

from sqlalchemy import Connection, bindparam, or_, select

from ..capacity.reads import ALLOCATION_NODES
from ..iam.directory import ACCOUNTS
from ..kit.problems import NotFound
from ..kit.rows import Query
from .grants import LASTING
from .rows import ShownGrantRow
from .schemas import AccessGrantView
from .tables import access_grants

V = TypeVar("V", bound=AccessGrantView)
_g = access_grants.c
_SHOWN = Query(
    select(
        access_grants,
        ALLOCATION_NODES.c.node_id,
        ALLOCATION_NODES.c.node_name,
        ALLOCATION_NODES.c.trust_applied,
        ACCOUNTS.c.name.label("principal_name"),
    )
    .join(ALLOCATION_NODES, ALLOCATION_NODES.c.allocation_id == _g.allocation_id)
    .join(ACCOUNTS, ACCOUNTS.c.id == _g.principal_id),
    ShownGrantRow,
)
_ONE = _SHOWN.where(_g.project_id == bindparam("project"), _g.id == bindparam("grant")).locked(access_grants)

_LASTING_ON = _SHOWN.where(_g.allocation_id.in_(bindparam("allocations", expanding=True)), LASTING)


def grants_of(project_id: str, now: int, *, revoked: bool) -> Query[ShownGrantRow]:
    """Build the query for the project's grants whose certificate is valid or whose session may be open. Revoked grants
    are left out unless `revoked` is set."""
    lasting = _SHOWN.where(_g.project_id == project_id, or_(_g.expires_at > now, _g.ends_at > now))
    return lasting if revoked else lasting.where(_g.revoked_at.is_(None))


def lasting_on(tx: Connection, allocation_ids: Collection[str], now: int) -> list[ShownGrantRow]:
    """Return grants on these allocations, revoked or not, whose certificate is valid or whose session may still be
    open."""
    return _LASTING_ON.all(tx, allocations=list(allocation_ids), now=now)


def grant_row(tx: Connection, project_id: str, grant_id: str) -> ShownGrantRow:
    """Lock and return the access grant, or raise 404 if the project has no such grant."""
    row = _ONE.first(tx, project=project_id, grant=grant_id)
    if row is None:
        raise NotFound("There is no such access grant in this project.")
    return row


def grant_view(row: ShownGrantRow, shown: type[V]) -> V:
    enforced = row.revoked_generation is not None and row.trust_applied >= row.revoked_generation
    addresses = row.source_addresses.split(",") if row.source_addresses else []
    more = {"serial": str(row.serial), "source_addresses": addresses, "enforced": enforced}
    return shown.model_validate(vars(row) | more)
