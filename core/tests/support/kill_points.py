"""One request by a core that is killed at a chosen point of it, and by the next one that is asked again.

Each life is a fork of the test process, which has everything imported: the whole application on the real store, killed
by SIGKILL from inside (at a statement) or by strace (at a system call). No product code knows of it.
"""

import asyncio
import contextlib
import gc
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuaas_core.doctor.examine import examine
from gpuaas_core.doctor.findings import Patient
from gpuaas_core.http.call import Platform
from gpuaas_core.kit.db import Database, metadata
from sqlalchemy import event, func, select

from core.tests.support import postgres
from core.tests.support.fixtures import Api, MovableClock, Store, World, caller, copy_store, looking, open_platform

KEY = "asked-again-after-the-crash"


@dataclass(frozen=True)
class Request:
    """A mutation, and what has to happen before it."""

    name: str
    prepare: Callable[[World], Awaitable[tuple[Callable[[World], Api], str, dict[str, Any]]]]


@dataclass(frozen=True)
class Prepared:
    folder: Path
    store: Store
    content: dict[str, bytes]
    who: Callable[[World], Api]
    path: str
    body: dict[str, Any]

    def fresh(self, folder: Path) -> Path:
        """The store as it was before the request: a copy of the file, or all rows written again."""
        if postgres.CHOSEN:
            postgres.refill(postgres.database_of(self.folder), self.content)
            return self.folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        return folder


def prepared(store: Store, folder: Path, request: Request) -> Prepared:
    copy_store(store, folder)

    async def prepare(platform: Platform) -> Any:
        async with caller(platform) as api:
            world = store.world.through(api.http)
            world.platform = platform
            return await request.prepare(world)

    with open_platform(folder, MovableClock(store.made), flushed=True) as platform:
        who, path, body = asyncio.run(prepare(platform))
    tables = [table.name for table in metadata.sorted_tables]
    content = postgres.copy_out(postgres.database_of(folder), tables) if postgres.CHOSEN else {}
    return Prepared(folder, store, content, who, path, body)


@dataclass
class Life:
    """How it ended, and what the caller was told before that; nothing, if it was killed first."""

    killed: bool
    answer: dict[str, Any] | None


Hook = Callable[[Platform], None]


def live(what: Prepared, folder: Path, hook: Hook | None = None, *, trace: list[str] | None = None) -> Life:
    told, tell = os.pipe()
    begin, go = os.pipe()
    child = os.fork()
    if child == 0:
        gc.disable()  # a collection would copy the pages of everything that the test process has imported
        status = 1
        try:
            os.close(told)
            os.close(go)
            os.read(begin, 1)
            _one_life(what, folder, hook, tell)
            status = 0
        finally:
            os._exit(status)
    os.close(tell)
    os.close(begin)
    with _traced(child, trace):
        os.close(go)
        _, status = os.waitpid(child, 0)
    with os.fdopen(told, "rb") as pipe:
        said = pipe.read()
    assert os.WIFSIGNALED(status) or status == 0, f"the request failed by itself: {said!r}"
    return Life(os.WIFSIGNALED(status), json.loads(said) if said else None)


def _one_life(what: Prepared, folder: Path, hook: Hook | None, tell: int) -> None:
    async def ask(platform: Platform) -> None:
        async with caller(platform) as api:
            who = what.who(what.store.world.through(api.http))
            answer = await who.post(what.path, what.body, key=KEY)
            replayed = "idempotency-replayed" in answer.headers
            said = {"status": answer.status_code, "body": answer.text, "replayed": replayed}
            os.write(tell, json.dumps(said).encode())

    with open_platform(folder, MovableClock(what.store.made), flushed=True) as platform:
        if hook:
            hook(platform)
        asyncio.run(ask(platform))
        if platform.db.is_sqlite:
            platform.db._writers.submit(_fold, platform.db).result()


def _fold(db: Database) -> None:
    """A checkpoint of the log, by the thread that wrote it: strace counts calls per thread."""
    raw = db.engine.raw_connection()
    raw.driver_connection.execute("pragma wal_checkpoint(truncate)")  # type: ignore[union-attr]
    raw.close()


@contextlib.contextmanager
def _traced(pid: int, words: list[str] | None) -> Iterator[None]:
    if words is None:
        yield
        return
    argv = ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid), *words]
    tracer = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
            assert tracer.poll() is None, "strace could not attach"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        yield
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            tracer.wait(5)
        tracer.kill()
        tracer.wait()


# ── the points inside a transaction


def statements(platform: Platform, seen: Callable[[str], None]) -> None:
    """Tells of every point of the writing transaction: after each statement, before the commit, after it."""

    @event.listens_for(platform.db.engine, "after_cursor_execute")
    def executed(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen("after " + " ".join(statement.split())[:60])

    @event.listens_for(platform.db.engine, "commit")
    def committing(_connection: Any) -> None:
        seen("before the commit")

    platform.db.on_write = lambda _seconds: seen("after the commit")


def points(what: Prepared, folder: Path) -> list[str]:
    """The names of all points, from a life without a kill."""
    notes = folder.parent / f"{folder.name}.points"

    def hook(platform: Platform) -> None:
        names: list[str] = []

        def seen(name: str) -> None:
            names.append(name)
            notes.write_text(json.dumps(names))

        statements(platform, seen)

    life = live(what, what.fresh(folder), hook)
    assert life.answer is not None
    assert life.answer["status"] < 300, life.answer
    return json.loads(notes.read_text())


def killing_at(number: int) -> Hook:
    def hook(platform: Platform) -> None:
        left = [number]

        def seen(_name: str) -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        statements(platform, seen)

    return hook


# ── what has to be true afterwards


def row_counts(folder: Path) -> dict[str, int]:
    with looking(folder) as tx:
        return {t.name: tx.execute(select(func.count()).select_from(t)).scalar_one() for t in metadata.sorted_tables}


def violations(what: Prepared, folder: Path) -> list[Any]:
    with open_platform(folder, MovableClock(what.store.made), flushed=True) as platform:
        found = examine(Patient(platform.db.read_now, platform.checkpoints, platform.clock()))
    return [violation for one in found for violation in one.violations]
