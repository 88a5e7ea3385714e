"""A process that writes events through the service path, in four threads. Started by test_events_storm.py.

Transactions of random length and size; one in five is given up after it has taken its numbers. Prints how many events
it has kept.
"""

import random
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from gpuaas_core.authz.context import Context
from gpuaas_core.authz.evaluate import PLATFORM, Principal, Scope
from gpuaas_core.kit.correlation import Correlation
from gpuaas_core.kit.db import Database
from gpuaas_core.tenancy import service as _declares_the_event  # noqa: F401
from sqlalchemy import Connection

EVENT = "tenancy.project.created"
THREADS = 4


class Gone(Exception):
    pass


def writer(db: Database, tenant: str, project: str, seed: int, events: int) -> int:
    dice, kept = random.Random(seed), 0
    scope = Scope((("project", project), ("tenant", tenant), PLATFORM), tenant_id=tenant, project_id=project)
    while kept < events:
        count, gone, pause = dice.randrange(1, 10), dice.random() < 0.2, dice.random() * 0.002

        def once(tx: Connection, count: int = count, gone: bool = gone, pause: float = pause) -> None:
            who, seen = Principal("storm", "test", "storm"), Correlation("cor-storm", "0" * 32)
            ctx = Context(tx, who, scope, "test", seen, int(time.time() * 1000))
            for number in range(count):
                ctx.emit(EVENT, f"storm-{seed}", {"slug": f"{seed}-{number}"})
            time.sleep(pause)
            ctx.flush()
            if gone:
                raise Gone

        try:
            db.write_now(once)
            kept += count
        except Gone:
            pass
        except sqlite3.OperationalError as error:  # on a loaded machine its turn did not come: nothing was begun
            if "database is locked" not in str(error):
                raise
    return kept


def main(url: str, tenant: str, project: str, seed: str, events: str) -> None:
    db = Database(url)
    with ThreadPoolExecutor(THREADS) as threads:
        seeds = [int(seed) * THREADS + number for number in range(THREADS)]
        print(sum(threads.map(lambda one: writer(db, tenant, project, one, int(events)), seeds)))
    db.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
