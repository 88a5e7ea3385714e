"""Sets and removes policies. A request that changes a policy names the revision that it is based on (If-Match)."""

from sqlalchemy import delete, insert, update
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..authz.evaluate import Place
from ..events.event_log import declare
from ..http.etags import PreconditionFailed, Preconditions
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.wire import canonical
from . import schemas
from .evaluate import Enables
from .reads import policy_row, policy_view
from .rows import PolicyRow
from .tables import policies

declare(
    {
        f"policy.{level}.{verb}": f"A policy of {'the' if level == 'platform' else 'a'} {level} {what}."
        for level in ("platform", "tenant", "project")
        for verb, what in {
            "set": "was created or changed",
            "removed": "was removed",
        }.items()
    }
)


def set_policy(ctx: Context, name: str, body: schemas.SetPolicy, seen: Preconditions) -> schemas.PolicyView:
    place = ctx.scope.chain[0]
    row = policy_row(ctx.tx, place, name, lock=True)
    seen.check(policy_view(row).etag if row else None)
    kept = write(ctx, place, name, row, body)
    ctx.resource_id = kept.id
    enables = _enables(body)
    contents = {"rules": body.rules.stored(), "reason": body.reason} | ({"enables": enables} if enables else {})
    ctx.emit(f"policy.{place[0]}.set", kept.id, {"name": name} | contents | {"revision": kept.revision})
    return policy_view(kept)


def remove_policy(ctx: Context, name: str, seen: Preconditions) -> schemas.PolicyView:
    place = ctx.scope.chain[0]
    row = policy_row(ctx.tx, place, name, lock=True)
    if row is None:
        raise NotFound(f"Policy {name!r} not found.")
    removed = policy_view(row)
    seen.check(removed.etag)
    ctx.resource_id = row.id
    ctx.tx.execute(delete(policies).where(policies.c.id == row.id))
    ctx.emit(f"policy.{place[0]}.removed", row.id, {"name": name})
    return removed


def write(ctx: Context, place: Place, name: str, row: PolicyRow | None, body: schemas.SetPolicy) -> PolicyRow:
    enables = _enables(body)
    change = {
        "rules": canonical(body.rules.stored()),
        "enables": canonical(enables) if enables else None,
        "reason": body.reason,
        "updated_by": ctx.principal.id,
        "updated_at": ctx.now,
    }
    if row is not None:
        changed = update(policies).where(policies.c.id == row.id).values(**change, revision=row.revision + 1)
        return PolicyRow(*ctx.tx.execute(changed.returning(policies)).one())
    key = {"id": new_id("pol"), "scope_kind": place[0], "scope_id": place[1], "name": name, "created_at": ctx.now}
    new = insert(policies).values(**key, **change, revision=1).returning(policies)
    try:
        with ctx.tx.begin_nested():
            return PolicyRow(*ctx.tx.execute(new).one())
    except IntegrityError as error:
        raise PreconditionFailed(f"The policy {name!r} was created by a concurrent request.") from error


def _enables(body: schemas.SetPolicy) -> Enables | None:
    return body.enables.stored() if isinstance(body, schemas.SetPlatformPolicy) and body.enables else None
