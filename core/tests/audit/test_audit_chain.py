"""The audit trail cannot change unseen: every row linked to the one before, checkpoints outside, verified from both."""

import asyncio
import json
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from gpuaas_core.api.app import build_app
from gpuaas_core.audit import anchoring, audit_log
from gpuaas_core.audit.chain import FIELDS, GENESIS, link
from gpuaas_core.audit.checkpoints import PURPOSE, BadCheckpoint, Checkpoints
from gpuaas_core.audit.tables import audit as audit_table
from gpuaas_core.counters import service as counters
from gpuaas_core.counters.tables import event_heads
from gpuaas_core.custody.key_providers.embedded import Embedded
from gpuaas_core.custody.tables import data_keys
from gpuaas_core.custody.vault import DataKeyVault
from gpuaas_core.http.call import Platform
from gpuaas_core.kit.db import Database
from gpuaas_core.migrations.migrate import alembic_config, migrate
from sqlalchemy import create_engine, func, insert, select, update

from core.tests.support.audit_trail import ROWS, TENANT, entry_of, replace, run, verified, write
from core.tests.support.fixtures import MovableClock, open_platform
from core.tests.support.store_rows import one, rows

pytestmark = pytest.mark.sqlite_only


def test_an_untouched_trail_verifies_to_its_end(here: Platform) -> None:
    verdict = verified(here)
    assert (verdict.ok, verdict.rows, verdict.checkpoints, verdict.anchored) == (True, ROWS, 3, ROWS)
    assert f"{ROWS} rows are intact" in verdict.sentence


def test_every_column_is_covered_by_the_hash(here: Platform) -> None:
    assert {column.name for column in audit_table.columns} == {*FIELDS, "hash"}
    row = rows(here, "select * from audit where sequence = 9")[0]
    for name in FIELDS:
        other = row | {name: "other"}
        assert link(GENESIS, other) != link(GENESIS, row), name


@pytest.mark.parametrize("value", [b"\xff\xfe", b"text", 4711])
def test_a_value_of_another_kind_is_a_break_and_no_accident(here: Platform, tmp_path: Path, value: Any) -> None:
    db = sqlite3.connect(tmp_path / "core.db")
    db.execute("update audit set reason = ? where sequence = 50", (value,))
    if value == b"\xff\xfe":
        db.execute("update audit set reason = cast(reason as text) where sequence = 50")
    db.commit()
    db.close()
    verdict = verified(here)
    assert verdict.broken is not None
    assert verdict.broken.sequence <= 50


def test_the_first_break_is_named_with_a_way_out(here: Platform) -> None:
    here.db.write_now(
        lambda tx: run(tx, update(audit_table).where(audit_table.c.sequence == 77).values(actor_id="usr_9"))
    )
    verdict = verified(here)
    assert verdict.rows == 76
    assert verdict.broken is not None
    assert verdict.broken.sequence == 77
    assert "Row 77 was changed" in verdict.sentence
    assert "find out who" in verdict.broken.way_out


def test_a_rewrite_is_told_from_an_edit(here: Platform) -> None:
    def again(tx: Any) -> None:
        found = [row._asdict() for row in tx.execute(select(audit_table).order_by(audit_table.c.sequence))]
        original = [dict(row) for row in found]
        found[149]["outcome"] = "denied"
        previous = found[148]["hash"]
        for row in found[149:]:
            row["hash"] = previous = link(previous, row)
        replace(tx, original, found, covered=True)

    here.db.write_now(again)
    verdict = verified(here)
    assert "up to 200 were rewritten" in verdict.sentence
    assert (verdict.checkpoints, verdict.anchored) == (1, 100)


def test_a_tenant_that_vanished_altogether_is_missed(here: Platform) -> None:
    def wipe(tx: Any) -> None:
        run(tx, audit_table.delete())
        run(tx, event_heads.delete())

    here.db.write_now(wipe)
    assert "the end was removed" in verified(here).sentence


def test_rows_without_their_counter_are_a_break(here: Platform) -> None:
    here.db.write_now(lambda tx: run(tx, event_heads.delete()))
    assert not verified(here).ok


def test_what_no_checkpoint_covers_yet_can_be_cut_off_unseen(here: Platform) -> None:
    """The limit, plainly: the newest five minutes (or thousand rows) are guarded by the chain alone."""
    write(here.db, range(ROWS + 1, ROWS + 11))
    assert verified(here).rows == ROWS + 10
    end = rows(here, "select sequence, hash from audit where sequence = :n", n=ROWS)[0]

    def cut(tx: Any) -> None:
        run(tx, audit_table.delete().where(audit_table.c.sequence > ROWS))
        run(tx, update(event_heads).values(audit_sequence=ROWS, audit_hash=end["hash"]))

    here.db.write_now(cut)
    assert verified(here).ok


# --- Checkpoints


def test_a_row_waits_at_most_five_minutes_or_a_thousand_rows(tmp_path: Path) -> None:
    migrate(f"sqlite:///{tmp_path}/core.db")
    clock = MovableClock(1_800_000_000_000)
    with open_platform(tmp_path, clock) as platform:
        write(platform.db, range(1, 11))
        clock.forward(299)
        assert anchoring.anchor_due(platform) == []
        clock.forward(2)
        assert anchoring.anchor_due(platform) == [TENANT]
        assert anchoring.anchor_due(platform) == [], "nothing new, so nothing to sign"
        clock.offset -= 301_000
        write(platform.db, range(11, 1010))
        assert anchoring.anchor_due(platform) == []
        write(platform.db, range(1010, 1012))
        assert anchoring.anchor_due(platform) == [TENANT]
        assert verified(platform).anchored == 1011


def test_a_crash_between_commit_and_checkpoint_loses_nothing(here: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the file, in the middle of its line, or before the store knows of it: the next round makes it good."""
    path = here.checkpoints.folder / f"{TENANT}.jsonl"
    write(here.db, range(ROWS + 1, ROWS + 4))
    assert verified(here).ok
    path.write_bytes(path.read_bytes() + b'{"at":1800000000')  # half a line: the writer died
    assert verified(here).ok
    with monkeypatch.context() as patch:
        patch.setattr(counters, "mark_anchored", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            anchoring.anchor_due(here, everything=True)
    assert verified(here).anchored == ROWS + 3
    assert anchoring.anchor_due(here, everything=True) == []
    assert one(here, "select audit_anchored from event_heads") == ROWS + 3
    assert path.read_bytes().count(b"\n") == 4


def test_what_does_not_follow_from_the_last_checkpoint_is_not_signed(here: Platform) -> None:
    write(here.db, range(ROWS + 1, ROWS + 4))
    here.db.write_now(lambda tx: run(tx, update(audit_table).where(audit_table.c.sequence == ROWS + 2).values(at=1)))
    assert anchoring.anchor_due(here, everything=True) == []
    assert not verified(here).ok


def test_a_restored_older_store_is_noticed_and_not_signed_over(here: Platform, trail: Path, tmp_path: Path) -> None:
    write(here.db, range(ROWS + 1, ROWS + 4))
    anchoring.anchor_due(here, everything=True)
    here.db.close()
    for file in tmp_path.glob("core.db*"):
        file.unlink()
    shutil.copy2(trail / "core.db", tmp_path)
    with open_platform(tmp_path, MovableClock()) as platform:
        assert "the end was removed" in verified(platform).sentence
        write(platform.db, range(1, 9))  # other things happen than did the first time
        assert anchoring.anchor_due(platform, everything=True) == []
        assert not verified(platform).ok


def _lines(platform: Platform) -> tuple[Path, list[bytes]]:
    path = platform.checkpoints.folder / f"{TENANT}.jsonl"
    return path, path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0].replace(b'"sequence":100', b'"sequence":101'), *lines[1:]],
        lambda lines: [lines[0], lines[2]],
        lambda lines: [lines[1], lines[0], lines[2]],
        lambda lines: lines[1:],
        lambda lines: lines[:-1],
        lambda lines: [],
        lambda lines: [*lines, b"not json\n"],
        lambda lines: [*lines, b'{"signature": 5}\n'],
        lambda lines: [*lines, lines[-1]],
    ],
)
def test_changed_or_lost_checkpoints_are_found(here: Platform, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path, lines = _lines(here)
    path.write_bytes(b"".join(change(lines)))
    verdict = verified(here)
    assert verdict.broken is not None
    assert verdict.broken.sequence == 0
    write(here.db, range(ROWS + 1, ROWS + 3))
    assert anchoring.anchor_due(here, everything=True) == [], "nothing is signed on top of it"


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0].replace(b'"sequence":100', b'"sequence":101'), *lines[1:]],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[-1]],
    ],
)
def test_a_process_notices_a_change_of_checkpoints_it_has_verified(
    here: Platform, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    write(here.db, range(ROWS + 1, ROWS + 3))
    assert anchoring.anchor_due(here, everything=True) == [TENANT]
    path, lines = _lines(here)
    path.write_bytes(b"".join(change(lines)))
    write(here.db, range(ROWS + 3, ROWS + 5))
    assert anchoring.anchor_due(here, everything=True) == [], "nothing is signed on top of it"


def test_a_new_checkpoint_does_not_verify_the_older_ones_again(here: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes write in turns: each verifies one signature of the other for each of its own checkpoints."""
    signed: list[str] = []
    check = Checkpoints._check_signature
    monkeypatch.setattr(
        Checkpoints, "_check_signature", lambda self, line, where: (signed.append(where), check(self, line, where))[1]
    )
    assert here.checkpoints is not None
    folder, key = here.checkpoints.folder, here.vault.public_key(PURPOSE)
    processes = [Checkpoints(folder, key), Checkpoints(folder, key)]
    for number in range(1, 41):
        writer = processes[number % 2]
        newest = writer.newest("ten_other")
        assert (newest.sequence if newest else 0) == number - 1
        assert writer.append(here.vault, "ten_other", number, f"{number:064d}", number)
    assert len(signed) <= 41
    assert len(processes[0].read("ten_other")) == 40


def test_checkpoints_of_another_key_are_worth_nothing(here: Platform) -> None:
    path, _ = _lines(here)
    path.unlink()
    stranger = DataKeyVault(Embedded({1: b"x" * 32}), b"x" * 32)
    forged = Checkpoints(path.parent, stranger.public_key(PURPOSE))
    assert forged.append(stranger, TENANT, ROWS, "0" * 64, 1)
    verdict = verified(here)
    assert "does not carry this platform's signature" in verdict.sentence


def test_a_stream_name_cannot_leave_the_folder(here: Platform) -> None:
    with pytest.raises(BadCheckpoint):
        here.checkpoints.append(here.vault, "../../etc/passwd", 1, "0" * 64, 1)


def test_checkpoint_files_are_private(here: Platform) -> None:
    path, _ = _lines(here)
    assert path.stat().st_mode & 0o077 == 0


# --- Writers at the same time


def _writers(db: Database, append: Callable[[Any, int], None], count: int = 6, each: int = 25) -> None:
    def work(worker: int) -> None:
        for number in range(each):
            append(db, worker * 1000 + number)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_writers_at_the_same_time_do_not_fork_the_chain(tmp_path: Path) -> None:
    migrate(f"sqlite:///{tmp_path}/core.db")
    with open_platform(tmp_path, MovableClock()) as platform:
        _writers(platform.db, lambda db, number: write(db, range(number, number + 1)))
        verdict = verified(platform)
        assert (verdict.ok, verdict.rows) == (True, 150), verdict.sentence


def test_the_known_bad_way_forks_and_is_found(tmp_path: Path) -> None:
    """Linking to "the last row" without holding the head: kept to prove that the check above can fail."""
    migrate(f"sqlite:///{tmp_path}/core.db")
    meet = threading.Barrier(2)

    def bad(db: Database, number: int) -> None:
        def last(tx: Any) -> tuple[int, str]:
            found = tx.execute(select(audit_table).order_by(audit_table.c.sequence.desc()).limit(1)).first()
            return (found.sequence, found.hash) if found else (0, GENESIS)

        _, previous = db.read_now(last)
        meet.wait(10)  # both have looked

        def write(tx: Any) -> None:
            sequence = (tx.execute(select(func.max(audit_table.c.sequence))).scalar() or 0) + 1
            row = dict.fromkeys(FIELDS, "x") | {"tenant_id": TENANT, "sequence": sequence, "at": number}
            row["hash"] = link(previous, row)
            run(tx, insert(audit_table).values(**row))
            run(tx, event_heads.delete())
            head = {"audit_sequence": sequence, "audit_hash": row["hash"]}
            run(tx, insert(event_heads).values(tenant_id=TENANT, sequence=0, **head))

        db.write_now(write)

    with open_platform(tmp_path, MovableClock()) as platform:
        _writers(platform.db, bad, count=2, each=5)
        assert one(platform, "select count(*) from audit") == 10
        verdict = verified(platform)
        assert verdict.broken is not None, "two rows linked to the same row and it was not noticed"
        assert "was changed" in verdict.sentence


def test_a_change_that_is_undone_leaves_no_hole(here: Platform) -> None:
    class Undone(Exception):
        pass

    def undone(tx: Any) -> None:
        audit_log.append(tx, entry_of(1), correlation_id="cor-00000000", trace_id="0" * 32, now=1)
        raise Undone

    with pytest.raises(Undone):
        here.db.write_now(undone)
    write(here.db, range(ROWS + 1, ROWS + 2))
    assert verified(here).rows == ROWS + 1


# --- The migration


def test_rows_of_the_old_schema_are_chained_by_the_migration(trail: Path, tmp_path: Path) -> None:
    shutil.copytree(trail, tmp_path, dirs_exist_ok=True)
    url = f"sqlite:///{tmp_path}/core.db"
    engine = create_engine(url)
    with engine.begin() as connection:
        keys = connection.execute(select(data_keys)).mappings().all()
        command.downgrade(alembic_config(connection), "0001")
    engine.dispose()
    with sqlite3.connect(tmp_path / "core.db") as db:
        assert "hash" not in [row[1] for row in db.execute("pragma table_info(audit)")]
    db.close()
    migrate(url)
    with create_engine(url).begin() as connection:
        connection.execute(insert(data_keys), [dict(key) for key in keys])  # the keys are younger than that schema
    with open_platform(tmp_path, MovableClock()) as platform:
        verdict = verified(platform)  # also: the migration's own way of hashing is still ours
        assert (verdict.ok, verdict.rows, verdict.anchored) == (True, ROWS, ROWS), verdict.sentence
        write(platform.db, range(ROWS + 1, ROWS + 5))
        assert verified(platform).rows == ROWS + 4


def test_a_checkpoint_says_what_it_covers(here: Platform) -> None:
    said = json.loads(_lines(here)[1][1])
    assert (said["tenant_id"], said["sequence"]) == (TENANT, 200)
    assert said["hash"] == one(here, "select hash from audit where sequence = 200")


async def test_the_loop_of_a_running_core_writes_checkpoints(here: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchoring, "AGE_MS", 0)
    write(here.db, range(ROWS + 1, ROWS + 2))
    app = build_app(here)
    async with app.router.lifespan_context(app):
        for _ in range(400):
            await asyncio.sleep(0.05)
            if verified(here).anchored > ROWS:
                return
    raise AssertionError("no checkpoint within 20 s")
