"""Many machines at once, by rows: for tests and benchmarks that need more than can be enrolled one by one."""

from pathlib import Path

from gpuaas_core.kit.db import Database, metadata
from sqlalchemy import select

from core.tests.support.fixtures import database_url


def add_machines(folder: Path, like: str, count: int) -> list[str]:
    """Copies of an allocation and its machine, which never fall silent: for tests that want many. Their ids."""
    t = metadata.tables
    db = Database(database_url(folder))
    try:
        with db.engine.begin() as tx:
            held = dict(tx.execute(select(t["allocations"]).where(t["allocations"].c.id == like)).one()._mapping)
            node = dict(tx.execute(select(t["nodes"]).where(t["nodes"].c.id == held["node_id"])).one()._mapping)
            names = [f"many-{number:06d}" for number in range(count)]
            tx.execute(t["nodes"].insert(), [node | {"id": f"node_{name}", "name": name} for name in names])
            heard = {"last_seen_at": node["created_at"], "due_at": node["created_at"] + 86_400_000}
            tx.execute(t["node_contacts"].insert(), [heard | {"node_id": f"node_{name}"} for name in names])
            rows = [held | {"id": f"alloc_{name}", "node_id": f"node_{name}", "name": name} for name in names]
            tx.execute(t["allocations"].insert(), rows)
            q = t["quotas"]
            used = {"used_allocations": q.c.used_allocations + count, "used_gpus": q.c.used_gpus + count * held["gpus"]}
            tx.execute(q.update().where(q.c.project_id == held["project_id"]).values(**used))
    finally:
        db.close()
    return [row["id"] for row in rows]
