"""The audit trail cannot change unseen: every row linked to the one before, checkpoints outside, verified from both."""

import json
import random
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from gpuaas_core.custody.vault import Vault
from gpuaas_core.edge.call import Platform
from gpuaas_core.history.checkpoints import PURPOSE, BadCheckpoint, Checkpoints
from gpuaas_core.history.verify import Verdict, verify
from gpuaas_core.kit.db import Database
from gpuaas_core.ledger import audit
from gpuaas_core.ledger.chain import FIELDS, GENESIS, link
from gpuaas_core.ledger.tables import audit as audit_table
from gpuaas_core.ledger.tables import event_heads
from gpuaas_core.migrations.migrate import alembic_config, migrate
from gpuaas_core.workers import anchoring
from sqlalchemy import create_engine, func, insert, select, text, update
from world import MovableClock, World, one, open_platform, rows

TENANT = "ten_0"
TRIALS = 1000
ROWS = 220


def _entry(number: int, tenant: str = TENANT) -> audit.Entry:
    denied = number % 7 == 0
    return audit.Entry(
        actor_id=f"usr_{number % 5}",
        actor_kind="user",
        permission="apps.instance.create",
        outcome="denied" if denied else "allowed",
        reason="Grüße, “Ada”" if denied else "role tenant_admin at tenant ten_0",
        tenant_id=tenant,
        project_id=f"prj_{number % 3}" if number % 4 else None,
        resource_id=f"inst_{number}" if number % 2 else None,
    )


def _write(db: Database, numbers: range, tenant: str = TENANT) -> None:
    def all_of_them(tx: Any) -> None:
        for number in numbers:
            ids = {"correlation_id": f"cor-{number:08d}", "trace_id": "0" * 32}
            audit.append(tx, _entry(number, tenant), now=1_800_000_000_000 + number, **ids)

    db.write_now(all_of_them)


@pytest.fixture(scope="module")
def trail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some hundred rows of one tenant and checkpoints at 100, 200 and at the end."""
    folder = tmp_path_factory.mktemp("trail")
    migrate(f"sqlite:///{folder}/core.db")
    with open_platform(folder, MovableClock()) as platform:
        for part in (range(1, 101), range(101, 201), range(201, ROWS + 1)):
            _write(platform.db, part)
            assert anchoring.anchor_due(platform, everything=True) == [TENANT]
    return folder


@pytest.fixture
def here(trail: Path, tmp_path: Path) -> Iterator[Platform]:
    shutil.copytree(trail, tmp_path, dirs_exist_ok=True)
    with open_platform(tmp_path, MovableClock()) as platform:
        yield platform


def _verify(platform: Platform, tenant: str = TENANT) -> Verdict:
    return verify(platform.db.read_now, platform.checkpoints, tenant)


def test_an_untouched_trail_verifies_to_its_end(here: Platform) -> None:
    verdict = _verify(here)
    assert (verdict.ok, verdict.rows, verdict.checkpoints, verdict.anchored) == (True, ROWS, 3, ROWS)
    assert f"{ROWS} rows are as they were written" in verdict.sentence


# --- 1,000 random mutations. Each is one change of somebody who can write the store but does not hold the key.

Rows = list[dict[str, Any]]


def edit(dice: random.Random, found: Rows, names: tuple[str, ...] = (*FIELDS, "hash")) -> str:
    """One character of one field becomes another, or one number is one off."""
    row = dice.choice(found)
    name = dice.choice([name for name in names if row[name] is not None and name != "sequence"])
    value = row[name]
    if isinstance(value, int):
        row[name] = value + dice.choice([-1, 1])
    else:
        at = dice.randrange(len(value))
        row[name] = value[:at] + dice.choice([c for c in "0aZ_é" if c != value[at]]) + value[at + 1 :]
    return f"edit {name} of {row['sequence']}"


def blank(dice: random.Random, found: Rows) -> str:
    row = dice.choice([row for row in found if row["project_id"] or row["resource_id"]])
    name = dice.choice([name for name in ("project_id", "resource_id") if row[name]])
    row[name] = None
    return f"blank {name} of {row['sequence']}"


def delete(dice: random.Random, found: Rows) -> str:
    return f"delete {found.pop(dice.randrange(len(found)))['sequence']}"


def delete_and_close_up(dice: random.Random, found: Rows) -> str:
    at = dice.randrange(len(found))
    del found[at]
    for row in found[at:]:
        row["sequence"] -= 1
    return f"delete {at + 1} and renumber"


def add(dice: random.Random, found: Rows) -> str:
    """A row between two others or before the first; the later ones make place."""
    at = dice.randrange(len(found))
    fresh = dict(dice.choice(found)) | {"sequence": at + 1}
    fresh["hash"] = link(found[at - 1]["hash"] if at else GENESIS, fresh)
    for row in found[at:]:
        row["sequence"] += 1
    found.insert(at, fresh)
    return f"insert at {at + 1}"


def add_outside(dice: random.Random, found: Rows) -> str:
    number = dice.choice([0, -1, len(found) + 1, len(found) + 5])
    found.append(dict(dice.choice(found)) | {"sequence": number})
    return f"insert as {number}"


def swap(dice: random.Random, found: Rows) -> str:
    one, other = dice.sample(found, 2)
    one["sequence"], other["sequence"] = other["sequence"], one["sequence"]
    return f"swap {one['sequence']} and {other['sequence']}"


def truncate(dice: random.Random, found: Rows) -> str:
    """The end is cut off, and the counter set back as if it had never been."""
    keep = dice.randrange(len(found))
    del found[keep:]
    return f"truncate to {keep}"


def _edit_content(dice: random.Random, found: Rows) -> str:
    return edit(dice, found, FIELDS)


def rewrite(dice: random.Random, found: Rows) -> str:
    """One row is changed and every hash from there on computed anew: the chain is sound again."""
    said = dice.choice([_edit_content, delete_and_close_up, add])(dice, found)
    previous = GENESIS
    for row in sorted(found, key=lambda row: row["sequence"]):
        row["hash"] = previous = link(previous, row)
    return f"rewrite after {said}"


MUTATIONS: list[Callable[[random.Random, Rows], str]] = [
    edit,
    edit,
    blank,
    delete,
    delete_and_close_up,
    add,
    add_outside,
    swap,
    truncate,
    rewrite,
]


def test_every_one_of_a_thousand_random_mutations_is_found(here: Platform) -> None:
    dice = random.Random(20261115)
    mine = select(audit_table).where(audit_table.c.tenant_id == TENANT).order_by(audit_table.c.sequence)
    unseen, tried = [], {mutate.__name__: 0 for mutate in MUTATIONS}
    with here.db.engine.connect() as tx:
        original = [row._asdict() for row in tx.execute(mine)]
        for _ in range(TRIALS):
            mutate, found = dice.choice(MUTATIONS), [dict(row) for row in original]
            said = mutate(dice, found)
            tried[mutate.__name__] += 1
            with tx.begin_nested() as trial:
                _replace(tx, original, found, covered=dice.random() < 0.5)
                if verify(lambda fn: fn(tx), here.checkpoints, TENANT).ok:
                    unseen.append(said)
                trial.rollback()
        assert verify(lambda fn: fn(tx), here.checkpoints, TENANT).ok
        tx.rollback()
    assert unseen == []
    assert sum(tried.values()) == TRIALS
    assert min(tried.values()) > 40, tried


def _replace(tx: Any, original: Rows, found: Rows, *, covered: bool) -> None:
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
        _run(tx, update(event_heads).where(event_heads.c.tenant_id == TENANT).values(**head))


def _run(tx: Any, statement: Any) -> None:
    tx.execute(statement)


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
    verdict = _verify(here)
    assert verdict.broken is not None
    assert verdict.broken.sequence <= 50


def test_the_first_break_is_named_with_a_way_out(here: Platform) -> None:
    here.db.write_now(
        lambda tx: _run(tx, update(audit_table).where(audit_table.c.sequence == 77).values(actor_id="usr_9"))
    )
    verdict = _verify(here)
    assert verdict.rows == 76
    assert verdict.broken is not None
    assert verdict.broken.sequence == 77
    assert "Row 77 is not as it was written" in verdict.sentence
    assert "find out who" in verdict.broken.way_out


def test_a_rewrite_is_told_from_an_edit(here: Platform) -> None:
    def again(tx: Any) -> None:
        found = [row._asdict() for row in tx.execute(select(audit_table).order_by(audit_table.c.sequence))]
        original = [dict(row) for row in found]
        found[149]["outcome"] = "denied"
        previous = found[148]["hash"]
        for row in found[149:]:
            row["hash"] = previous = link(previous, row)
        _replace(tx, original, found, covered=True)

    here.db.write_now(again)
    verdict = _verify(here)
    assert "up to 200 were written anew" in verdict.sentence
    assert (verdict.checkpoints, verdict.anchored) == (1, 100)


def test_a_tenant_that_vanished_altogether_is_missed(here: Platform) -> None:
    def wipe(tx: Any) -> None:
        _run(tx, audit_table.delete())
        _run(tx, event_heads.delete())

    here.db.write_now(wipe)
    assert "cut off" in _verify(here).sentence


def test_rows_without_their_counter_are_a_break(here: Platform) -> None:
    here.db.write_now(lambda tx: _run(tx, event_heads.delete()))
    assert not _verify(here).ok


def test_what_no_checkpoint_covers_yet_can_be_cut_off_unseen(here: Platform) -> None:
    """The limit, plainly: the newest five minutes (or thousand rows) are guarded by the chain alone."""
    _write(here.db, range(ROWS + 1, ROWS + 11))
    assert _verify(here).rows == ROWS + 10
    end = rows(here, "select sequence, hash from audit where sequence = :n", n=ROWS)[0]

    def cut(tx: Any) -> None:
        _run(tx, audit_table.delete().where(audit_table.c.sequence > ROWS))
        _run(tx, update(event_heads).values(audit_sequence=ROWS, audit_hash=end["hash"]))

    here.db.write_now(cut)
    assert _verify(here).ok


# --- Checkpoints


def test_a_row_waits_at_most_five_minutes_or_a_thousand_rows(tmp_path: Path) -> None:
    migrate(f"sqlite:///{tmp_path}/core.db")
    clock = MovableClock(1_800_000_000_000)
    with open_platform(tmp_path, clock) as platform:
        _write(platform.db, range(1, 11))
        clock.forward(299)
        assert anchoring.anchor_due(platform) == []
        clock.forward(2)
        assert anchoring.anchor_due(platform) == [TENANT]
        assert anchoring.anchor_due(platform) == [], "nothing new, so nothing to sign"
        clock.offset -= 301_000
        _write(platform.db, range(11, 1010))
        assert anchoring.anchor_due(platform) == []
        _write(platform.db, range(1010, 1012))
        assert anchoring.anchor_due(platform) == [TENANT]
        assert _verify(platform).anchored == 1011


def test_a_crash_between_commit_and_checkpoint_loses_nothing(here: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the file, in the middle of its line, or before the store knows of it: the next round makes it good."""
    path = here.checkpoints.folder / f"{TENANT}.jsonl"
    _write(here.db, range(ROWS + 1, ROWS + 4))
    assert _verify(here).ok
    path.write_bytes(path.read_bytes() + b'{"at":1800000000')  # half a line: the writer died
    assert _verify(here).ok
    with monkeypatch.context() as patch:
        patch.setattr(anchoring, "_mark", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            anchoring.anchor_due(here, everything=True)
    assert _verify(here).anchored == ROWS + 3
    assert anchoring.anchor_due(here, everything=True) == []
    assert one(here, "select audit_anchored from event_heads") == ROWS + 3
    assert path.read_bytes().count(b"\n") == 4


def test_what_does_not_follow_from_the_last_checkpoint_is_not_signed(here: Platform) -> None:
    _write(here.db, range(ROWS + 1, ROWS + 4))
    here.db.write_now(lambda tx: _run(tx, update(audit_table).where(audit_table.c.sequence == ROWS + 2).values(at=1)))
    assert anchoring.anchor_due(here, everything=True) == []
    assert not _verify(here).ok


def test_a_restored_older_store_is_noticed_and_not_signed_over(here: Platform, trail: Path, tmp_path: Path) -> None:
    _write(here.db, range(ROWS + 1, ROWS + 4))
    anchoring.anchor_due(here, everything=True)
    here.db.close()
    for file in tmp_path.glob("core.db*"):
        file.unlink()
    shutil.copy2(trail / "core.db", tmp_path)
    with open_platform(tmp_path, MovableClock()) as platform:
        assert "cut off" in _verify(platform).sentence
        _write(platform.db, range(1, 9))  # other things happen than did the first time
        assert anchoring.anchor_due(platform, everything=True) == []
        assert not _verify(platform).ok


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
    verdict = _verify(here)
    assert verdict.broken is not None
    assert verdict.broken.sequence == 0
    _write(here.db, range(ROWS + 1, ROWS + 3))
    assert anchoring.anchor_due(here, everything=True) == [], "nothing is signed on top of it"


def test_checkpoints_of_somebody_elses_key_are_worth_nothing(here: Platform) -> None:
    path, _ = _lines(here)
    path.unlink()
    stranger = Vault(b"x" * 32)
    forged = Checkpoints(path.parent, stranger.public_key(PURPOSE))
    assert forged.append(stranger, TENANT, ROWS, "0" * 64, 1)
    verdict = _verify(here)
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
        _writers(platform.db, lambda db, number: _write(db, range(number, number + 1)))
        verdict = _verify(platform)
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
            _run(tx, insert(audit_table).values(**row))
            _run(tx, event_heads.delete())
            head = {"audit_sequence": sequence, "audit_hash": row["hash"]}
            _run(tx, insert(event_heads).values(tenant_id=TENANT, sequence=0, **head))

        db.write_now(write)

    with open_platform(tmp_path, MovableClock()) as platform:
        _writers(platform.db, bad, count=2, each=5)
        assert one(platform, "select count(*) from audit") == 10
        verdict = _verify(platform)
        assert verdict.broken is not None, "two rows linked to the same row and nobody noticed"
        assert "not as it was written" in verdict.sentence


def test_a_change_that_is_undone_leaves_no_hole(here: Platform) -> None:
    class Undone(Exception):
        pass

    def undone(tx: Any) -> None:
        audit.append(tx, _entry(1), correlation_id="cor-00000000", trace_id="0" * 32, now=1)
        raise Undone

    with pytest.raises(Undone):
        here.db.write_now(undone)
    _write(here.db, range(ROWS + 1, ROWS + 2))
    assert _verify(here).rows == ROWS + 1


# --- The migration


def test_rows_of_the_old_schema_are_chained_by_the_migration(trail: Path, tmp_path: Path) -> None:
    shutil.copytree(trail, tmp_path, dirs_exist_ok=True)
    url = f"sqlite:///{tmp_path}/core.db"
    engine = create_engine(url)
    with engine.begin() as connection:
        command.downgrade(alembic_config(connection), "0001")
    engine.dispose()
    with sqlite3.connect(tmp_path / "core.db") as db:
        assert "hash" not in [row[1] for row in db.execute("pragma table_info(audit)")]
    db.close()
    migrate(url)
    with open_platform(tmp_path, MovableClock()) as platform:
        verdict = _verify(platform)  # also: the migration's own way of hashing is still ours
        assert (verdict.ok, verdict.rows, verdict.anchored) == (True, ROWS, ROWS), verdict.sentence
        _write(platform.db, range(ROWS + 1, ROWS + 5))
        assert _verify(platform).rows == ROWS + 4


# --- Over HTTP


async def test_everything_people_do_is_chained_denials_too(world: World) -> None:
    await world.running()
    refused = await world.viewer.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[1]))
    assert refused.status_code == 403
    verdict = (await world.boss.get(f"/v1/tenants/{world.tenant}/audit/verify")).json()
    assert verdict["ok"], verdict
    assert verdict["rows"] == one(world.platform, "select count(*) from audit where tenant_id = :t", t=world.tenant)
    assert verdict["anchored_at"] is None
    assert "none is covered by a checkpoint yet" in verdict["sentence"]
    assert set(anchoring.anchor_due(world.platform, everything=True)) == {world.tenant, "platform"}
    verdict = (await world.admin.get(f"/v1/tenants/{world.tenant}/audit/verify")).json()
    assert verdict["ok"]
    assert verdict["anchored"] == verdict["rows"]
    assert verdict["anchored_at"].endswith("Z")
    assert _verify(world.platform, "platform").ok


async def test_a_broken_trail_is_an_answer_with_a_sentence(world: World) -> None:
    change = update(audit_table).where(audit_table.c.tenant_id == world.tenant, audit_table.c.sequence == 3)
    world.platform.db.write_now(lambda tx: _run(tx, change.values(reason="nothing happened")))
    answer = await world.boss.get(f"/v1/tenants/{world.tenant}/audit/verify")
    assert answer.status_code == 200
    assert answer.json()["ok"] is False
    assert answer.json()["broken"]["sequence"] == 3
    assert answer.json()["broken"]["way_out"]


async def test_the_trail_can_be_searched(world: World) -> None:
    await world.running()
    await world.viewer.post(f"/v1/projects/{world.red}/instances", headers={"X-Correlation-Id": "ticket-4711"})

    async def found(query: str) -> list[dict[str, Any]]:
        answer = await world.boss.get(f"/v1/tenants/{world.tenant}/audit?limit=1000&{query}")
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    everything = await found("")
    (denial,) = await found("outcome=denied")
    assert denial["correlation_id"] == "ticket-4711"
    assert await found("correlation_id=ticket-4711") == [denial]
    assert await found(f"actor={world.viewer_id}") == [denial]
    of_red = await found(f"project={world.red}")
    assert of_red == [row for row in everything if row["project_id"] == world.red] != everything
    apps = await found("permission=apps.")
    assert apps == [row for row in everything if row["permission"].startswith("apps.")] != []
    assert await found("permission=app_") == [], "an underscore is an underscore"
    assert await found(f"permission=apps.&outcome=denied&actor={world.boss_id}") == []


@pytest.mark.parametrize("query", ["actor=%00", "permission=%25", "outcome=maybe", "project=a b", "actor=" + "x" * 200])
async def test_a_senseless_search_is_refused(world: World, query: str) -> None:
    answer = await world.boss.get(f"/v1/tenants/{world.tenant}/audit?{query}")
    assert answer.status_code == 422, answer.text


async def test_verifying_needs_its_own_permission(world: World) -> None:
    for caller, status in ((world.viewer, 404), (world.controller, 404), (world.machine, 404)):
        answer = await caller.get(f"/v1/tenants/{world.tenant}/audit/verify")
        assert answer.status_code == status, answer.text


def test_a_checkpoint_says_what_it_covers(here: Platform) -> None:
    said = json.loads(_lines(here)[1][1])
    assert (said["tenant_id"], said["sequence"]) == (TENANT, 200)
    assert said["hash"] == one(here, "select hash from audit where sequence = 200")
