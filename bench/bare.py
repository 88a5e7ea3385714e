"""The same requests by hand: what a careful programmer would write for one purpose, without a platform around it.

Served by `bench/api.py` next to the core, with the same uvicorn settings, driver, tables and rows. One look at the
token, one at the role bindings; then the statements themselves, in one transaction, answered as JSON without models.
It has no deny rules, no correlation ids, no lifecycles, no problem documents, no request lines: that is what the ratio
is about.
"""

import asyncio
import hashlib
import json
import secrets
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from gpuaas_core.audit.tables import audit
from gpuaas_core.authz.permissions import ROLES
from gpuaas_core.capacity.tables import allocations, nodes
from gpuaas_core.catalog.tables import app_versions, entitlements
from gpuaas_core.events.tables import event_heads, events
from gpuaas_core.iam.tables import principals, role_bindings
from gpuaas_core.idempotency.tables import seen_requests
from gpuaas_core.identity.tables import sessions
from gpuaas_core.instances.tables import allocation_holds, instances, members
from gpuaas_core.kit.db import Database
from gpuaas_core.operations.tables import operations
from gpuaas_core.tenancy.tables import projects
from pydantic import BaseModel
from sqlalchemy import Connection, insert, select, update

app = FastAPI(openapi_url=None)
_MEMBER_COLUMNS = [members, nodes.c.name.label("node_name"), nodes.c.address, nodes.c.facts]


class Deploy(BaseModel):
    name: str
    app_slug: str
    placement_intent: dict[str, list[str]]


class Claim(BaseModel):
    app_slug: str
    holder: str
    wait_s: int = 0


class Complete(BaseModel):
    claim_epoch: int
    members: list[dict[str, str]]


class Store:
    """Reads inline on SQLite, otherwise in threads; writes in threads: the same arrangement as the core's."""

    def __init__(self, url: str) -> None:
        db = Database(url)  # for its engine: same pragmas, same pool
        self.engine, self.inline = db.engine, db.is_sqlite
        self.reader = self.engine if db.is_sqlite else self.engine.execution_options(postgresql_readonly=True)
        self.writers, self.readers = ThreadPoolExecutor(1 if db.is_sqlite else 8), ThreadPoolExecutor(4)
        if db.is_sqlite:
            self.reader = db._read_engine

    async def read(self, fn: Callable[[Connection], Any]) -> Any:
        if self.inline:
            return self._read(fn)
        return await asyncio.get_running_loop().run_in_executor(self.readers, self._read, fn)

    async def write(self, fn: Callable[[Connection], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.writers, self._write, fn)

    def _read(self, fn: Callable[[Connection], Any]) -> Any:
        with self.reader.connect() as tx:
            return fn(tx)

    def _write(self, fn: Callable[[Connection], Any]) -> Any:
        with self.engine.begin() as tx:
            return fn(tx)


store: Store


def _now() -> int:
    return time.time_ns() // 1_000_000


def _new(prefix: str) -> str:
    return f"{prefix}_{int(time.time() * 1000):012x}{secrets.token_hex(7)}"


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json")


def _may(tx: Connection, request: Request, project_id: str, key: str) -> Any:
    """Who calls, if its token is good and one of its roles here holds the key."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    query = select(principals, sessions.c.expires_at, sessions.c.revoked_at).join(
        sessions, sessions.c.principal_id == principals.c.id
    )
    who = tx.execute(query.where(sessions.c.token_hash == hashlib.sha256(token.encode()).hexdigest())).first()
    if who is None or who.disabled_at or who.revoked_at or who.expires_at <= _now():
        raise HTTPException(401)
    tenant = select(projects.c.tenant_id).where(projects.c.id == project_id).scalar_subquery()
    held = select(role_bindings.c.role, role_bindings.c.scope_id, tenant.label("tenant_id"))
    rows = tx.execute(held.where(role_bindings.c.principal_id == who.id)).all()
    if not any(row.scope_id in (project_id, row.tenant_id) and key in ROLES[row.role] for row in rows):
        raise HTTPException(403)
    return who, rows[0].tenant_id


def _known(tx: Connection, who: Any, request: Request, route: str, scope: str) -> tuple[dict[str, str], Any]:
    s = seen_requests.c
    key = {"principal_id": who.id, "route": route, "scope_id": scope, "key": request.headers["idempotency-key"]}
    return key, tx.execute(select(seen_requests).where(*(s[name] == value for name, value in key.items()))).first()


def _keep(
    tx: Connection,
    key: dict[str, str],
    body: str,
    said: list[tuple[str, str, dict[str, Any]]],
    *,
    who: Any,
    tenant: str,
    project: str,
    permission: str,
    resource: str,
    content: bytes,
    status: int,
) -> Response:
    """Events, audit row and the remembered answer, in the transaction of the change."""
    now, h = _now(), event_heads.c
    moved = update(event_heads).where(h.tenant_id == tenant)
    moved = moved.values(sequence=h.sequence + len(said), audit_sequence=h.audit_sequence + 1)
    head = tx.execute(moved.returning(h.sequence, h.audit_sequence, h.audit_hash)).one()
    ids = {"correlation_id": "cor-" + secrets.token_hex(12), "trace_id": secrets.token_hex(16)}
    row = {"tenant_id": tenant, "sequence": head.audit_sequence, "at": now, "actor_id": who.id, "actor_kind": who.kind}
    row |= {"permission": permission, "outcome": "allowed", "reason": "role", "project_id": project}
    row |= {"resource_id": resource} | ids
    text = json.dumps({"previous": head.audit_hash, "row": row}, sort_keys=True, separators=(",", ":"))
    row["hash"] = hashlib.sha256(text.encode()).hexdigest()
    tx.execute(insert(audit).values(row))
    tx.execute(update(event_heads).where(h.tenant_id == tenant).values(audit_hash=row["hash"]))
    first = head.sequence - len(said) + 1
    made = [
        {"tenant_id": tenant, "sequence": first + n, "id": _new("evt"), "type": type, "project_id": project, "at": now}
        | {"subject": subject, "data": data}
        | ids
        for n, (type, subject, data) in enumerate(said)
    ]
    tx.execute(insert(events), made)
    fingerprint = hashlib.sha256(content).hexdigest()
    tx.execute(insert(seen_requests).values(**key, fingerprint=fingerprint, status=status, body=body, at=now))
    return Response(body, status, media_type="application/json")


def _members(tx: Connection, instance_id: str) -> list[dict[str, Any]]:
    query = select(*_MEMBER_COLUMNS).join(nodes, nodes.c.id == members.c.node_id)
    return [dict(row._mapping) for row in tx.execute(query.where(members.c.instance_id == instance_id))]


def _instance(tx: Connection, project_id: str, instance_id: str) -> dict[str, Any]:
    query = select(instances).where(instances.c.project_id == project_id, instances.c.id == instance_id)
    row = tx.execute(query).first()
    if row is None:
        raise HTTPException(404)
    return dict(row._mapping) | {
        "current_operation_id": _live(tx, instance_id),
        "members": _members(tx, instance_id),
        "available_actions": [
            {"action": "decommission", "allowed": row.state != "deleted", "reason": ""},
            {"action": "retry", "allowed": row.state == "failed", "reason": f"the instance is {row.state}"},
        ],
    }


def _live(tx: Connection, instance_id: str) -> str | None:
    live = operations.c.status.in_(["queued", "running"])
    return tx.execute(select(operations.c.id).where(operations.c.lock_key == instance_id, live)).scalar()


@app.get("/v1/projects/{project_id}/instances/{instance_id}")
async def get_instance(request: Request, project_id: str, instance_id: str) -> Response:
    def read(tx: Connection) -> Any:
        _may(tx, request, project_id, "apps.instance.read")
        return _instance(tx, project_id, instance_id)

    return _json(await store.read(read))


@app.get("/v1/projects/{project_id}/instances/{instance_id}/members")
async def list_members(request: Request, project_id: str, instance_id: str) -> Response:
    def read(tx: Connection) -> Any:
        _may(tx, request, project_id, "apps.instance.read")
        found = select(instances.c.id).where(instances.c.project_id == project_id, instances.c.id == instance_id)
        if tx.execute(found).first() is None:
            raise HTTPException(404)
        return {"items": _members(tx, instance_id), "next_cursor": None}

    return _json(await store.read(read))


@app.post("/v1/projects/{project_id}/instances")
async def deploy(request: Request, project_id: str, body: Deploy) -> Response:
    content = await request.body()

    def write(tx: Connection) -> Response:
        who, tenant = _may(tx, request, project_id, "apps.instance.create")
        key, known = _known(tx, who, request, "POST /instances", project_id)
        if known:
            return Response(known.body, known.status, media_type="application/json")
        instance, operation, made = _deploy(tx, project_id, tenant, who, body)
        answer = json.dumps({"instance": instance, "operation": operation})
        facts = {"app_slug": body.app_slug, "app_instance_id": instance["id"], "operation_id": operation["id"]}
        said = [("apps.member.added", one["id"], facts | {"member_id": one["id"]}) for one in made]
        said.append(("apps.operation.queued", operation["id"], facts))
        said.append(("apps.instance.requested", instance["id"], facts))
        return _keep(
            tx,
            key,
            answer,
            said,
            who=who,
            tenant=tenant,
            project=project_id,
            permission="apps.instance.create",
            resource=instance["id"],
            content=content,
            status=202,
        )

    return await store.write(write)


def _deploy(tx: Connection, project_id: str, tenant: str, who: Any, body: Deploy) -> tuple[Any, Any, list[Any]]:
    mine = (entitlements.c.project_id == project_id) & (entitlements.c.app_slug == body.app_slug)
    if not tx.execute(select(entitlements.c.enabled).where(mine)).scalar():
        raise HTTPException(403)
    version = tx.execute(
        select(app_versions)
        .where(app_versions.c.app_slug == body.app_slug, app_versions.c.published_at.is_not(None))
        .order_by(app_versions.c.published_at.desc())
        .limit(1)
    ).one()
    i, wanted = instances.c, sorted({one for chosen in body.placement_intent.values() for one in chosen})
    if tx.execute(select(i.id).where(i.project_id == project_id, i.name == body.name, i.state != "deleted")).first():
        raise HTTPException(409)
    chosen = select(allocations).where(allocations.c.project_id == project_id, allocations.c.id.in_(wanted))
    found = {row.id: row for row in tx.execute(chosen.with_for_update(key_share=True))}
    if any(one not in found or found[one].state != "active" for one in wanted):
        raise HTTPException(422)
    if tx.execute(select(allocation_holds).where(allocation_holds.c.allocation_id.in_(wanted))).first():
        raise HTTPException(409)
    now, instance_id, operation_id = _now(), _new("inst"), _new("op")
    instance = _template("instance") | {"id": instance_id, "name": body.name, "placement_intent": body.placement_intent}
    instance |= {"state": "requested", "created_at": now, "updated_at": now, "last_operation_id": operation_id}
    tx.execute(insert(instances).values(instance))
    tx.execute(insert(allocation_holds), [{"allocation_id": one, "instance_id": instance_id} for one in wanted])
    made = [
        _template("member")
        | {"id": _new("mem"), "instance_id": instance_id, "component_key": component, "allocation_id": one}
        | {"node_id": found[one].node_id, "state": "pending", "created_at": now, "updated_at": now}
        for component in [one["key"] for one in version.manifest["components"]]
        for one in body.placement_intent["head"]
    ]
    tx.execute(insert(members), made)
    operation = _template("operation") | {"id": operation_id, "lock_key": instance_id, "target_id": instance_id}
    operation |= {"status": "queued", "requested_by": who.id, "created_at": now, "app_slug": body.app_slug}
    tx.execute(insert(operations).values(operation))
    return instance | {"members": made}, operation, made


@app.post("/v1/projects/{project_id}/operations/claim")
async def claim(request: Request, project_id: str, body: Claim) -> Response:
    content, o = await request.body(), operations.c

    def write(tx: Connection) -> Response:
        who, tenant = _may(tx, request, project_id, "apps.operation.work")
        key, known = _known(tx, who, request, "POST /claim", project_id)
        if known:
            return Response(known.body, known.status, media_type="application/json")
        query = select(operations).where(o.scope_id == project_id, o.app_slug == body.app_slug, o.status == "queued")
        row = tx.execute(query.order_by(o.id).limit(1).with_for_update(skip_locked=True)).first()
        if row is None:
            return Response(status_code=204)
        lease = {"status": "running", "claim_epoch": row.claim_epoch + 1, "claimed_by": body.holder}
        lease |= {"claimant_id": who.id, "attempts": row.attempts + 1, "lease_expires_at": _now() + 30_000}
        tx.execute(update(operations).where(o.id == row.id).values(**lease))
        tx.execute(update(instances).where(instances.c.id == row.lock_key).values(state="provisioning"))
        answer = {"operation": dict(row._mapping) | lease, "instance": _instance(tx, project_id, row.lock_key)}
        answer |= {"claim_epoch": lease["claim_epoch"], "lease_expires_in_s": 30}
        facts = {"operation_id": row.id, "app_instance_id": row.lock_key, "claim_epoch": lease["claim_epoch"]}
        said = [("apps.operation.claimed", row.id, facts), ("apps.instance.provisioning", row.lock_key, facts)]
        return _keep(
            tx,
            key,
            json.dumps(answer),
            said,
            who=who,
            tenant=tenant,
            project=project_id,
            permission="apps.operation.work",
            resource=row.id,
            content=content,
            status=200,
        )

    return await store.write(write)


@app.post("/v1/projects/{project_id}/operations/{operation_id}/complete")
async def complete(request: Request, project_id: str, operation_id: str, body: Complete) -> Response:
    content, o = await request.body(), operations.c

    def write(tx: Connection) -> Response:
        who, tenant = _may(tx, request, project_id, "apps.operation.work")
        key, known = _known(tx, who, request, "POST /complete", project_id)
        if known:
            return Response(known.body, known.status, media_type="application/json")
        row = tx.execute(select(operations).where(o.id == operation_id).with_for_update()).one()
        if row.status != "running" or row.claim_epoch != body.claim_epoch or row.claimant_id != who.id:
            raise HTTPException(409)
        facts = {"operation_id": row.id, "app_instance_id": row.lock_key, "claim_epoch": row.claim_epoch}
        said: list[tuple[str, str, dict[str, Any]]] = []
        for one in body.members:
            mine = (members.c.id == one["member_id"]) & (members.c.instance_id == row.lock_key)
            tx.execute(update(members).where(mine).values(state=one["state"], updated_at=_now()))
            said.append(("apps.member.changed", one["member_id"], facts))
        done = {"status": "succeeded", "message": "Done", "finished_at": _now(), "lease_expires_at": None}
        tx.execute(update(operations).where(o.id == row.id).values(**done))
        well = {"state": "running", "health_status": "healthy", "health_sentence": "Running", "updated_at": _now()}
        tx.execute(update(instances).where(instances.c.id == row.lock_key).values(**well))
        said += [("apps.operation.succeeded", row.id, facts), ("apps.instance.running", row.lock_key, facts)]
        return _keep(
            tx,
            key,
            json.dumps(dict(row._mapping) | done),
            said,
            who=who,
            tenant=tenant,
            project=project_id,
            permission="apps.operation.work",
            resource=row.id,
            content=content,
            status=200,
        )

    return await store.write(write)


_rows: dict[str, dict[str, Any]] = {}


def _template(name: str) -> dict[str, Any]:
    """A row as the core writes it, so that this file need not know every column."""
    if name not in _rows:
        table = {"instance": instances, "member": members, "operation": operations}[name]
        with store.reader.connect() as tx:
            row = dict(tx.execute(select(table).order_by(table.c.id.desc()).limit(1)).one()._mapping)
        _rows[name] = row | {n: 0 for n in ("claim_epoch", "attempts", "furthest_step", "not_before") if n in row}
    return dict(_rows[name])


if __name__ == "__main__":
    store = Store(sys.argv[1])
    for noun in ("instance", "member", "operation"):
        _template(noun)
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False, server_header=False)
