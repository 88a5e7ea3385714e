"""Views of instances and members, with the actions that are possible now."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias
from weakref import WeakKeyDictionary

import msgspec
from fastapi import Response
from pydantic_core import to_json
from sqlalchemy import Connection, Engine

from ..catalog.manifest_types import Manifest
from ..http.etags import in_halves, tagged_json
from ..kit.clock import rfc3339
from ..kit.json_types import JsonValue
from ..kit.wire import view_of
from ..operations.errors import NotRetryable
from ..operations.rows import OperationRow
from ..operations.states import STUCK
from ..operations.views import action_views, operation_views
from . import actions, schemas
from .placement import rules_of
from .reads import (
    MemberTotal,
    Staying,
    counts,
    first_members,
    first_states,
    known_instance,
    live_of,
    live_of_instances,
    manifest_of,
    member_totals,
    members_by_id,
    newest_operations,
    some_members,
    staying_in,
)
from .rows import InstanceId, InstanceRow, InstanceSummary, ListedMember, MemberRow, StoredCondition, Work, work_of
from .states import KINDS, OF_INSTANCE, OF_MEMBER

MOST_MEMBERS = 200  # inside an instance; the list of members has them all
IN_ANSWERS = 50  # inside an instance that is part of an answer to an action
_OF_INSTANCE = [kind for kind, known in KINDS.items() if known.target == OF_INSTANCE and known.ask]
_OF_MEMBER = [kind for kind, known in KINDS.items() if known.target == OF_MEMBER and known.key != "add"]
States: TypeAlias = Sequence[tuple[str, str]]  # id and state of members
Fields: TypeAlias = Mapping[str, JsonValue | msgspec.Raw]
_Instance: TypeAlias = InstanceRow | InstanceSummary


def instance_view(
    tx: Connection, row: InstanceRow, *, most: int = MOST_MEMBERS, only: Sequence[str] | None = None
) -> schemas.InstanceView:
    """Build the view of an instance. `most`: the largest number of members to include (0: none). `only`: the ids of the
    members to include instead."""
    if only is None:
        return _one_view(tx, row, most).view()
    named = members_by_id(tx, row.id, only).values()
    shown = sorted((one for one in named if one.state != "removed"), key=lambda one: one.id)
    return _views(tx, [row], {row.id: shown}, complete=frozenset())[0].view()


def instance_response(tx: Connection, row: InstanceRow, most: int) -> Response:
    """Return the view of an instance with at most `most` members as a JSON response, with its ETag."""
    return _one_view(tx, row, most).response()


def _one_view(tx: Connection, row: InstanceRow, most: int) -> "_Shown":
    shown = some_members(tx, row, most) if most else []
    complete = frozenset([row.id] if len(shown) < most else ())
    return _views(tx, [row], {row.id: shown}, complete=complete, most=most)[0]


def instance_views(
    tx: Connection, rows: Sequence[InstanceRow], *, most: int = MOST_MEMBERS
) -> list[schemas.InstanceView]:
    """Build the views of a page of instances with one query for each kind of related row."""
    shown = first_members(tx, rows, most) if most and rows else {}
    complete = frozenset(row.id for row in rows if len(shown.get(row.id, ())) < most)
    return [one.view() for one in _views(tx, rows, shown, complete=complete, most=most)]


@dataclass(frozen=True)
class _Shown:
    """The data that is shown of an instance. It is rendered as a view or as JSON, with the same fields and the same
    ETag."""

    row: InstanceRow
    stands: "_Standing"
    last: actions.NewestOperation | None
    members: Sequence[MemberRow]
    counts: Sequence[MemberTotal]
    asked: list[object]  # what people and operations did to the instance (`_asked`)

    def view(self) -> schemas.InstanceView:
        row, seen = self.row, Members(self.stands, Staying.of(self.members))
        view = schemas.InstanceView.model_validate(
            vars(row)
            | {
                "org_id": row.tenant_id,
                "health": self._health(),
                "conditions": self._conditions(),
                "requested": row.requested or {},
                "members": [seen.view(one) for one in self.members],
                "members_total": sum(one.count for one in self.counts),
                "member_counts": self.counts,
                "current_operation_id": self._current(),
                "available_actions": _instance_actions(self.stands, self.last).views,
            }
        )
        view.etag = in_halves(self.asked, view.model_dump_json().encode())
        return view

    def response(self) -> Response:
        """Return the view as a JSON response, encoded without building the view: an instance is read often, and its
        stored values need no validation."""
        row, seen = self.row, Members(self.stands, Staying.of(self.members))
        shown = _ENCODER.encode(
            {
                "id": row.id,
                "etag": "",
                "name": row.name,
                "project_id": row.project_id,
                "org_id": row.tenant_id,
                "app_slug": row.app_slug,
                "version": row.version,
                "topology": row.topology,
                "state": row.state,
                "health": self._health(),
                "conditions": [schemas.ConditionView.model_validate(one).model_dump() for one in self._conditions()],
                "generation": row.generation,
                "observed_generation": row.observed_generation,
                "inputs": _encoded(row.inputs),
                "placement_intent": row.placement_intent,
                "operating_mode": row.operating_mode,
                "control_plane_scope": row.control_plane_scope,
                "runtime_backend": row.runtime_backend,
                "tenant_boundary_mode": row.tenant_boundary_mode,
                "requested": row.requested or {},
                "operator_id": row.operator_id,
                "previous_version": row.previous_version,
                "runtime_version": row.runtime_version,
                "access": _encoded(row.access),
                "adapter_detail": _encoded(row.adapter_detail),
                "members": [seen.facts(one) for one in self.members],
                "members_total": sum([one.count for one in self.counts]),
                "member_counts": self.counts,
                "current_operation_id": self._current(),
                "last_operation_id": row.last_operation_id,
                "available_actions": _instance_actions(self.stands, self.last).encoded,
                "correlation_id": row.correlation_id,
                "created_at": rfc3339(row.created_at),
                "updated_at": rfc3339(row.updated_at),
            }
        )
        return tagged_json(in_halves(self.asked, shown), shown)

    def _health(self) -> dict[str, str]:
        return {"status": self.row.health_status, "sentence": self.row.health_sentence}

    def _conditions(self) -> Sequence[StoredCondition | schemas.ConditionView]:
        return [*self.row.conditions, *_stuck_condition(self.row, self.stands.live)]

    def _current(self) -> str | None:
        return self.stands.live[0].id if self.stands.live else None


def _views(
    tx: Connection,
    rows: Sequence[InstanceRow],
    shown: Mapping[InstanceId, Sequence[MemberRow]],
    *,
    complete: frozenset[InstanceId],
    most: int | None = None,
) -> list[_Shown]:
    """Collect the data that is shown of each instance, with the given members. `complete`: the instances whose members
    are all given."""
    partly = [row for row in rows if row.id not in complete]
    live = live_of_instances(tx, rows)
    last = newest_operations(tx, rows)
    totals = member_totals(tx, partly) if partly else {}
    first = first_states(tx, partly, MOST_MEMBERS) if partly and most != MOST_MEMBERS else {}
    views: list[_Shown] = []
    for row in rows:
        there = shown.get(row.id, ())
        by_state = _counted(there) if row.id in complete else totals.get(row.id, ())
        seen = first[row.id] if row.id in first else [(one.id, one.state) for one in there[:MOST_MEMBERS]]
        stands = _Standing.of(tx, row, live[row.id])
        views.append(_Shown(row, stands, last.get(row.id), there, by_state, _asked(row, live[row.id], seen)))
    return views


def _asked(row: InstanceRow, live: actions.Live, first: States) -> list[object]:
    """Return the values for the first half of the ETag: requests and operations change them, observations do not."""
    parts = [list(one) for one in first]
    return [row.state, row.generation, row.version, row.last_operation_id, [one.id for one in live], parts]


def _counted(shown: Sequence[MemberRow]) -> list[MemberTotal]:
    found = counts((one.component_key, one.state) for one in shown)
    return [MemberTotal(key, state, count) for (key, state), count in sorted(found.items())]


def member_view(tx: Connection, instance: InstanceRow, row: MemberRow) -> schemas.MemberView:
    return _members(tx, instance).view(row)


def listed_members(
    tx: Connection, instance: InstanceSummary, rows: Sequence[ListedMember], *, all_of_them: bool
) -> list[Fields]:
    """Return the fields of `MemberView` for each row of a list. `all_of_them`: the rows are all current members of the
    instance."""
    members = _members(tx, instance, rows if all_of_them else None)
    return [members.listed(row) for row in rows]


def _members(tx: Connection, instance: _Instance, every: Sequence[ListedMember] | None = None) -> "Members":
    staying = staying_in(tx, instance.id) if every is None else Staying.of(every)
    return Members(_Standing.of(tx, instance, live_of(tx, instance)), staying)


# What can be done, by the facts that decide it (`actions.InstanceFacts`, `actions.MemberFacts`), in one store.
_Fact: TypeAlias = str | int | bool | None
_Known: TypeAlias = "dict[tuple[_Fact, ...], Possible]"
_KNOWN: WeakKeyDictionary[Engine, _Known] = WeakKeyDictionary()
MOST_KNOWN = 10_000
_ENCODER = msgspec.json.Encoder()
_MEMBER_FIELDS = tuple(schemas.MemberView.model_fields)


@dataclass(frozen=True)
class Possible:
    """The actions of an instance or a member, each with whether it is possible now, as views and as JSON."""

    views: list[schemas.ActionView]
    operation_id: str | None = None  # of the operation under way, which reasons may name

    def under(self, operation_id: str | None) -> "Possible":
        """Return the actions with reasons that name this operation, instead of the operation for which the actions were
        computed."""
        if self.operation_id is None or operation_id is None or operation_id == self.operation_id:
            return self
        return Possible([_naming(view, self.operation_id, operation_id) for view in self.views], operation_id)

    @cached_property
    def encoded(self) -> msgspec.Raw:
        return msgspec.Raw(to_json(self.views))


def _encoded(value: object) -> msgspec.Raw | None:
    """Encode a stored value in the same way as the view, also integers with more than 64 bits; None stays None."""
    return None if value is None else msgspec.Raw(to_json(value))


def _naming(view: schemas.ActionView, old: str, new: str) -> schemas.ActionView:
    if old not in view.reason:
        return view
    return schemas.ActionView(action=view.action, allowed=view.allowed, reason=view.reason.replace(old, new))


def _known(tx: Connection) -> _Known:
    known = _KNOWN.setdefault(tx.engine, {})
    if len(known) > MOST_KNOWN:
        known.clear()
    return known


@dataclass(frozen=True)
class _Standing:
    """An instance with its manifest and its operations under way. It caches actions by the facts that decide them."""

    instance: _Instance
    manifest: Manifest
    live: actions.Live
    known: _Known
    facts: tuple[_Fact, ...]

    @classmethod
    def of(cls, tx: Connection, row: _Instance, live: actions.Live) -> "_Standing":
        deployed = row.observed_generation > 0
        facts = (row.app_slug, row.version, row.topology, row.state, row.previous_version, deployed)
        return cls(row, manifest_of(tx, row), live, _known(tx), facts)

    @property
    def taken(self) -> bool:
        """Whether exactly one operation is under way, and it is an operation of the instance itself, which excludes all
        others."""
        return len(self.live) == 1 and self.live[0].member_id is None

    def possible(self, alike: tuple[_Fact, ...], ask: Callable[[], list[schemas.ActionView]]) -> Possible:
        """Return the cached actions for these facts; if there are none, compute them with `ask` and cache them. Nothing
        is cached while an operation of a member is under way."""
        if self.live and not self.taken:
            return Possible(ask())
        kind, operation_id = (self.live[0].kind, self.live[0].id) if self.live else (None, None)
        alike = (*self.facts, kind, *alike)
        known = self.known.get(alike)
        if known is None:
            known = self.known[alike] = Possible(ask(), operation_id)
        return known.under(operation_id)


@dataclass(frozen=True)
class Members:
    """Builds the views of an instance's members. Members with the same facts share their actions, as long as no
    operation of a member is under way."""

    stands: _Standing
    staying: Staying
    found: dict[tuple[_Fact, ...], Possible] = field(default_factory=dict[tuple[_Fact, ...], "Possible"])

    def view(self, row: MemberRow) -> schemas.MemberView:
        own = {"current_operation_id": self._own(row), "available_actions": self._actions(row).views}
        return view_of(schemas.MemberView, vars(row) | own)

    def facts(self, row: MemberRow) -> Fields:
        """Return the fields of the member's view in their order, ready to be encoded as JSON."""
        return {
            "id": row.id,
            "instance_id": row.instance_id,
            "component_key": row.component_key,
            "ordinal": row.ordinal,
            "state": row.state,
            "allocation_id": row.allocation_id,
            "node_id": row.node_id,
            "node_name": row.node_name,
            "address": row.address,
            "facts": _encoded(row.facts),
            "runtime_state": row.runtime_state,
            "runtime_version": row.runtime_version,
            "adapter_detail": _encoded(row.adapter_detail),
            "replaces": row.replaces,
            "current_operation_id": self._own(row) if self.stands.live else None,
            "last_operation_id": row.last_operation_id,
            "available_actions": self._actions(row).encoded,
            "correlation_id": row.correlation_id,
        }

    def listed(self, row: ListedMember) -> Fields:
        """Return the fields of the member's view, ready to be encoded as JSON. A listed row already has them in their
        order."""
        values: dict[str, JsonValue | msgspec.Raw] = dict(zip(_MEMBER_FIELDS, row, strict=False))
        values["facts"] = msgspec.Raw(row.facts)
        if row.adapter_detail is not None:
            values["adapter_detail"] = msgspec.Raw(row.adapter_detail)
        values["current_operation_id"] = self._own(row) if self.stands.live else None
        values["available_actions"] = self._actions(row).encoded
        return values

    def _own(self, row: actions.MemberFacts) -> str | None:
        """Return the id of the member's operation under way, or None."""
        return next((one.id for one in self.stands.live if row.id in (one.member_id, one.old_member_id)), None)

    def _actions(self, row: actions.MemberFacts) -> Possible:
        stands = self.stands
        if stands.live and not stands.taken:
            return Possible(self._asked(row))
        count: int | None = None
        shared_on: str | None = None
        if not stands.taken:  # otherwise each action is refused before these facts are looked at
            count = self.staying.components[row.component_key]
            shared_on = row.node_name if self.staying.machines[row.allocation_id] > 1 else None
        last = (row.last_target_kind, row.last_kind, row.last_status, row.host_is_gone)
        own = (row.state, row.component_key, count, shared_on, *last)
        if own not in self.found:
            self.found[own] = stands.possible(own, lambda: self._asked(row))
        return self.found[own]

    def _asked(self, row: actions.MemberFacts) -> list[schemas.ActionView]:
        stands = self.stands
        where = (row, stands.instance, stands.manifest, stands.live, self.staying)
        possible = {KINDS[kind].key: actions.of_member(kind, *where) for kind in _OF_MEMBER}
        possible["retry"] = actions.retry_of_member(row, stands.instance, stands.live)
        possible["tombstone"] = actions.tombstone(row, stands.instance, stands.live)
        return action_views(possible.items())


def _stuck_condition(row: InstanceRow, live: actions.Live) -> list[schemas.ConditionView]:
    """Return a list with the `Stuck` condition if an operation under way is stuck, otherwise an empty list."""
    for one in live:
        if one.stuck_reason is not None:
            return [
                schemas.ConditionView(
                    type="Stuck",
                    status="True",
                    reason=one.stuck_reason,
                    message=f"The {one.kind} {one.id} stands still. {STUCK[one.stuck_reason]}",
                    observed_generation=row.generation,
                    last_transition_at=rfc3339(one.stuck_since or one.created_at) or "",
                )
            ]
    return []


def _instance_actions(stands: _Standing, last: actions.NewestOperation | None) -> Possible:
    """Return the actions of the instance. `last`: the newest operation of the instance, whose kind and status decide
    whether it can be retried."""
    if last and last.id != stands.instance.last_operation_id:  # a reason names the newer one
        return Possible(_asked_of_instance(stands, last))
    alike = (last.kind, last.status) if last else (None, None)
    return stands.possible(alike, lambda: _asked_of_instance(stands, last))


def _asked_of_instance(stands: _Standing, last: actions.NewestOperation | None) -> list[schemas.ActionView]:
    row, manifest, live = stands.instance, stands.manifest, stands.live
    possible = {KINDS[k].key or k: actions.of_instance(k, row, manifest, live, last) for k in _OF_INSTANCE}
    for component in rules_of(manifest, row.topology):
        possible[f"add_{component}"] = actions.adding(component, row, manifest, live)
    possible["retry"] = NotRetryable("It has no operation that could be retried.")
    if last is not None:
        possible["retry"] = actions.retry_of_instance(last, row, live)
    return action_views(possible.items())


def accepted_view(tx: Connection, operation: OperationRow) -> schemas.AcceptedView:
    view = instance_view(tx, known_instance(tx, work_of(operation).instance_id), most=IN_ANSWERS)
    return schemas.AcceptedView(instance=view, operation=shown_operations(tx, [operation])[0])


def batch_view(tx: Connection, batch_id: str, queued: Sequence[Work]) -> schemas.BatchView:
    instance = known_instance(tx, queued[0].instance_id)
    return schemas.BatchView(
        batch_id=batch_id,
        instance=instance_view(tx, instance, only=[one.target_id for one in queued]),
        operations=shown_operations(tx, queued),
    )


def shown_operations(tx: Connection, operations: Sequence[OperationRow]) -> list[schemas.OperationView]:
    return [schemas.OperationView.model_validate(view) for view in operation_views(tx, operations)]
