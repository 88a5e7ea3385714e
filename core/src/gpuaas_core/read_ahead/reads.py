"""Reads whose statements are known before they run: on PostgreSQL the statements are sent together, and no thread is
needed.

`http/call` uses this for routes that only read. The function of the read runs on the event loop, as on SQLite, with
rows that were fetched ahead in one message. If it needs a row that was not fetched, or if fetching failed, the read
runs again in a thread, in a transaction of its own. The reasons are in
docs/decisions/0032-reads-sent-ahead-on-postgresql.md.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from sqlalchemy import Connection

from ..kit.db import Database
from ..kit.prepared import Fetched, encoded, is_heard
from .pipelines import PipelineFailed, Pipelines
from .plans import Answers, Missed, Plan, Recorder

T = TypeVar("T")


class ReadAhead:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._pipelines = None if db.is_sqlite else Pipelines(db.url)
        self._plans: dict[str, Plan] = {}
        if self._pipelines:
            db.on_close.append(self._pipelines.close)

    async def read(self, route: str, inputs: Mapping[str, object], fn: Callable[[Connection], T]) -> T:
        """Run `fn` in a read transaction and return its result, as `Database.read` does. `inputs` are values of the
        request, such as ids in its path, from which the statements may take their values."""
        if self._pipelines is None or is_heard(self._db.read_engine):
            return await self._db.read(fn)
        plan = self._plans.setdefault(route, Plan())
        if plan.given_up or not plan.needs <= inputs.keys():
            return await self._db.read(fn)
        if plan.guesses:
            try:
                result = fn(await self._fetch(plan, inputs, self._pipelines))
            except Missed:
                plan.misses += 1
            except PipelineFailed:
                return await self._db.read(fn)
            else:
                plan.hits += 1
                plan.drop_unused()
                return result
        recorder = Recorder()
        result = await self._db.read(lambda tx: recorder.run(tx, fn))
        plan.learn(recorder.sent, inputs)
        return result

    async def _fetch(self, plan: Plan, inputs: Mapping[str, object], pipelines: Pipelines) -> Connection:
        asked = plan.questions(self._db.read_engine.dialect, inputs)
        sent = {name: encoded(value) for name, value in inputs.items()}
        found = await pipelines.ask([(one.sql, one.parameters(sent)) for one in asked])
        answers = Answers(asked[: len(found)], found, inputs)  # another request may have added one meanwhile
        return Fetched(self._db.read_engine, answers, Missed())
