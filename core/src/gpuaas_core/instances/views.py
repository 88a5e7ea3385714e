"""What is shown of instances and members, with what can be done about them now."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Row, func, select

from ..http.etags import in_halves
from ..operations.errors import NotRetryable
from ..operations.rows import OperationRow
from ..operations.states import STUCK
from ..operations.views import action_views, operation_view
from . import actions, schemas
from .placement import rules_of
from .reads import (
    MEMBER_COLUMNS,
    Staying,
    last_operation,
    live_operations,
    manifest_of,
    members_query,
    staying_in,
)
from .states import KINDS, OF_INSTANCE, OF_MEMBER
from .tables import instances, members
from .work import Work, work_of

MOST_MEMBERS = 200  # inside an instance; the list of members has them all
IN_ANSWERS = 50  # inside an instance that is part of an answer to an action
_OF_INSTANCE = [kind for kind, known in KINDS.items() if known.target == OF_INSTANCE and known.ask]
_MEMBER_FIELDS = sorted(schemas.MemberView.model_fields.keys() - {"current_operation_id", "available_actions"})
# By position: a page of members looks up a thousand fields, and by name each is a search.
_FIELDS_OF = itemgetter(*(MEMBER_COLUMNS.index(name) for name in _MEMBER_FIELDS))
_OF_MEMBER = [kind for kind, known in KINDS.items() if known.target == OF_MEMBER and known.key != "add"]


def instance_view(
    tx: Connection, row: Row[Any], *, most: int | None = MOST_MEMBERS, only: list[str] | None = None
) -> schemas.InstanceView:
    """`most=None`: with every member, for the controller that works on it. `most=0`: with none, for long lists.
    `only`: with these."""
    live = live_operations(tx, row.id)
    manifest = manifest_of(tx, row)
    shown = _members(tx, row, most, only)
    all_shown = only is None and (most is None or len(shown) < most)
    counts = _counted(shown) if all_shown else _counts(tx, row)
    seen = Members(row, manifest, live, Staying.of(shown))
    facts = dict(row._mapping) | {
        "org_id": row.tenant_id,
        "health": {"status": row.health_status, "sentence": row.health_sentence},
        "conditions": [*row.conditions, *_stuck_condition(row, live)],
        "requested": row.requested or {},
        "members": [seen.view(one) for one in shown],
        "members_total": sum(one.count for one in counts),
        "member_counts": counts,
        "current_operation_id": live[0].id if live else None,
        "available_actions": _instance_actions(tx, row, manifest, live),
    }
    view = schemas.InstanceView.model_validate(facts)
    first = shown[:MOST_MEMBERS] if all_shown or (only is None and most == MOST_MEMBERS) else _first(tx, row)
    view.etag = in_halves(_asked(row, live, first), view)
    return view


def _asked(row: Row[Any], live: actions.Live, first: Iterable[Any]) -> list[Any]:
    """What people and operations do to it, without what is only seen of it between operations; the same however many
    members are shown."""
    parts = [[one.id, one.state] for one in first]
    return [row.state, row.generation, row.version, row.last_operation_id, [one.id for one in live], parts]


def _members(tx: Connection, row: Row[Any], most: int | None, only: list[str] | None) -> list[Row[Any]]:
    if most == 0:
        return []
    query = members_query(row.id, removed=row.state == "deleted").order_by(members.c.id)
    if only is not None:
        query = query.where(members.c.id.in_(only))
    return list(tx.execute(query.limit(most) if most else query))


def _first(tx: Connection, row: Row[Any]) -> list[Row[Any]]:
    m = members.c
    return list(tx.execute(_those_of(row, m.id, m.state).order_by(m.id).limit(MOST_MEMBERS)))


def _counts(tx: Connection, row: Row[Any]) -> list[schemas.MemberCount]:
    m = members.c
    found = _those_of(row, m.component_key, m.state, func.count().label("count")).group_by(m.component_key, m.state)
    return [schemas.MemberCount.model_validate(one) for one in tx.execute(found.order_by(m.component_key, m.state))]


def _counted(shown: list[Row[Any]]) -> list[schemas.MemberCount]:
    found = Counter((one.component_key, one.state) for one in shown)
    return [schemas.MemberCount(component_key=key, state=at, count=n) for (key, at), n in sorted(found.items())]


def _those_of(row: Row[Any], *columns: Any) -> Any:
    """Members that are there; of an instance that is gone, those it had."""
    gone = members.c.state == "removed" if row.state == "deleted" else members.c.state != "removed"
    return select(*columns).where(members.c.instance_id == row.id, gone)


def member_views(tx: Connection, instance: Row[Any]) -> Callable[[Row[Any]], schemas.MemberView]:
    """For a page of members: what they have in common is looked up once."""
    manifest, live = manifest_of(tx, instance), live_operations(tx, instance.id)
    return Members(instance, manifest, live, staying_in(tx, instance.id)).view


@dataclass
class Members:
    """Members of one instance in one state can do the same, as long as no operation of their own is under way."""

    instance: Row[Any]
    manifest: actions.Manifest
    live: actions.Live
    staying: Staying
    _alike: dict[tuple[str | bool | None, ...], list[schemas.ActionView]] = field(default_factory=dict)

    def view(self, row: Row[Any]) -> schemas.MemberView:
        own = next((one.id for one in self.live if row.id in (one.member_id, one.old_member_id)), None)
        facts = {"current_operation_id": own, "available_actions": self._actions(row, own)}
        own_facts = dict(zip(_MEMBER_FIELDS, _FIELDS_OF(row), strict=True))
        return schemas.MemberView.model_construct(**own_facts, **facts)  # from our own columns: nothing to check

    def _actions(self, row: Row[Any], own: str | None) -> list[schemas.ActionView]:
        last = (row.last_target_kind, row.last_kind, row.last_status, bool((row.last_params or {}).get("host_is_gone")))
        alike = (row.state, row.component_key, self.staying.machines[row.allocation_id] > 1, *last)
        if own is not None:
            return self._asked(row)
        if alike not in self._alike:
            self._alike[alike] = self._asked(row)
        return self._alike[alike]

    def _asked(self, row: Row[Any]) -> list[schemas.ActionView]:
        where = (row, self.instance, self.manifest, self.live, self.staying)
        possible = {KINDS[kind].key: actions.of_member(kind, *where) for kind in _OF_MEMBER}
        possible["retry"] = actions.retry_of_member(row, self.instance, self.live)
        possible["tombstone"] = actions.tombstone(row, self.instance, self.live)
        return action_views(possible.items())


def _stuck_condition(row: Row[Any], live: actions.Live) -> list[dict[str, Any]]:
    """Worked out from the operations under way; absent while all of them move."""
    for one in live:
        if one.stuck_reason is not None:
            return [
                {
                    "type": "Stuck",
                    "status": "True",
                    "reason": one.stuck_reason,
                    "message": f"The {one.kind} {one.id} stands still. {STUCK[one.stuck_reason]}",
                    "observed_generation": row.generation,
                    "last_transition_at": one.stuck_since,
                }
            ]
    return []


def _instance_actions(
    tx: Connection, row: Row[Any], manifest: actions.Manifest, live: actions.Live
) -> list[schemas.ActionView]:
    last = last_operation(tx, row)
    possible = {KINDS[k].key or k: actions.of_instance(k, row, manifest, live, last) for k in _OF_INSTANCE}
    for component in rules_of(manifest, row.topology):
        possible[f"add_{component}"] = actions.adding(component, row, manifest, live)
    possible["retry"] = NotRetryable("It has no operation that could be retried.")
    if last is not None:
        possible["retry"] = actions.retry(last, row, None, live)
    return action_views(possible.items())


def accepted_view(tx: Connection, operation: OperationRow) -> schemas.AcceptedView:
    instance = tx.execute(select(instances).where(instances.c.id == work_of(operation).instance_id)).one()
    view = instance_view(tx, instance, most=IN_ANSWERS)
    return schemas.AcceptedView(instance=view, operation=_shown_operation(tx, operation))


def batch_view(tx: Connection, batch_id: str, queued: Sequence[Work]) -> schemas.BatchView:
    instance = tx.execute(select(instances).where(instances.c.id == queued[0].instance_id)).one()
    return schemas.BatchView(
        batch_id=batch_id,
        instance=instance_view(tx, instance, only=[one.target_id for one in queued]),
        operations=[_shown_operation(tx, one) for one in queued],
    )


def _shown_operation(tx: Connection, operation: OperationRow) -> schemas.OperationView:
    return schemas.OperationView.model_validate(operation_view(tx, operation))
