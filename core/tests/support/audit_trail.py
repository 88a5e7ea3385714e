"""An audit trail of some hundred rows with signed checkpoints, and ways to change it behind the platform's back."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.audit import anchoring, audit_log
from gpuaas_core.audit.chain import GENESIS
from gpuaas_core.audit.tables import audit as audit_table
from gpuaas_core.audit.verify import Verdict, verify
from gpuaas_core.counters.tables import event_heads
from gpuaas_core.http.call import Platform
from gpuaas_core.kit.db import Database
from gpuaas_core.migrations.migrate import migrate
from sqlalchemy import insert, text, update

from core.tests.support import postgres
from core.tests.support.fixtures import MovableClock, database_url, new_store, open_platform, remove_store

TENANT = "ten_0"
ROWS = 220
Rows = list[dict[str, Any]]


def entry_of(number: int, tenant: str = TENANT) -> audit_log.Entry:
    denied = number % 7 == 0
    return audit_log.Entry(
        actor_id=f"usr_{number % 5}",
        actor_kind="user",
        permission="apps.instance.create",
        outcome="denied" if denied else "allowed",
        reason="Grüße, “Ada”" if denied else "role tenant_admin at tenant ten_0",
        tenant_id=tenant,
        project_id=f"prj_{number % 3}" if number % 4 else None,
        resource_id=f"inst_{number}" if number % 2 else None,
    )


def write(db: Database, numbers: range, tenant: str = TENANT) -> None:
    def all_of_them(tx: Any) -> None:
        for number in numbers:
            ids = {"correlation_id": f"cor-{number:08d}", "trace_id": "0" * 32}
            audit_log.append(tx, entry_of(number, tenant), now=1_800_000_000_000 + number, **ids)

    db.write_now(all_of_them)


@pytest.fixture(scope="module")
def trail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some hundred rows of one tenant and checkpoints at 100, 200 and at the end."""
    folder = tmp_path_factory.mktemp("trail")
    new_store(folder)
    migrate(database_url(folder))
    with open_platform(folder, MovableClock()) as platform:
        for part in (range(1, 101), range(101, 201), range(201, ROWS + 1)):
            write(platform.db, part)
            assert anchoring.anchor_due(platform, everything=True) == [TENANT]
    return folder


@pytest.fixture
def here(trail: Path, tmp_path: Path) -> Iterator[Platform]:
    shutil.copytree(trail, tmp_path, dirs_exist_ok=True)
    if postgres.CHOSEN:
        postgres.create(postgres.database_of(tmp_path), postgres.database_of(trail))
    with open_platform(tmp_path, MovableClock()) as platform:
        yield platform
    remove_store(tmp_path)


def verified(platform: Platform, tenant: str = TENANT) -> Verdict:
    return verify(platform.db.read_now, platform.checkpoints, tenant)


def replace(tx: Any, original: Rows, found: Rows, *, covered: bool) -> None:
    """Writes what differs. `covered`: the counter beside the chain is set to fit as well."""
    before = {row["sequence"]: row for row in original}
    after = {row["sequence"]: row for row in found}
    changed = [row for sequence, row in after.items() if row != before.get(sequence)]
    gone = [{"s": sequence} for sequence in before.keys() - after.keys() | {row["sequence"] for row in changed}]
    if gone:
        tx.execute(text("delete from audit where sequence = :s"), gone)
    if changed:
        tx.execute(insert(audit_table), changed)
    last = max(found, key=lambda row: row["sequence"], default={"sequence": 0, "hash": GENESIS})
    if covered or len(found) < len(original):
        head = {"audit_sequence": last["sequence"], "audit_hash": last["hash"]}
        run(tx, update(event_heads).where(event_heads.c.tenant_id == TENANT).values(**head))


def run(tx: Any, statement: Any) -> None:
    tx.execute(statement)
