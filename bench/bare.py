"""The limits that `bench/api.py` compares the core with, served by FastAPI and uvicorn with the core's settings.

- `GET /hello`: a handler that returns a small JSON. No program in this stack answers a request with less.
- The routes for create, claim and complete send again what the core sent for the same request: the recorded SQL text
  and parameters (`recording.py`), in one transaction, through `sqlite3` or psycopg without SQLAlchemy. The rows are
  fetched, and the recorded answer of the core is returned. Every text is prepared once per connection (sqlite3 and
  psycopg both keep prepared statements).

The store is a copy of the one on which the core was recorded, in the same state, with the same durability
(synchronous=FULL; PostgreSQL as its server is configured), so that every statement finds the rows it found there. The
transactions run one after the other in one thread, so no lock is ever waited for.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import uvicorn
from fastapi import FastAPI, Request, Response
from recording import Recorded, Sent
from recording import Request as Replayed

app = FastAPI(openapi_url=None)
one_writer = ThreadPoolExecutor(1)
Send = Callable[[list[Sent]], None]


def through_sqlite(url: str) -> Send:
    connection = sqlite3.connect(
        url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False, cached_statements=1024
    )
    for pragma in ("busy_timeout=15000", "synchronous=FULL", "foreign_keys=ON", "journal_mode=WAL"):
        connection.execute(f"PRAGMA {pragma}")

    def send(statements: list[Sent]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for one in statements:
            if one.many:
                connection.executemany(one.text, one.parameters)  # type: ignore[arg-type] # as it was recorded
            else:
                connection.execute(one.text, one.parameters).fetchall()  # type: ignore[arg-type] # as it was recorded
        connection.execute("COMMIT")

    return send


def through_psycopg(url: str) -> Send:
    connection = psycopg.connect(url.replace("postgresql+psycopg", "postgresql"), prepare_threshold=0)
    connection.prepared_max = None

    def send(statements: list[Sent]) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            for one in statements:
                if one.many:
                    cursor.executemany(one.text, one.parameters)  # type: ignore[arg-type] # as it was recorded
                else:
                    cursor.execute(one.text, one.parameters)  # type: ignore[arg-type] # as it was recorded
                    if cursor.description:
                        cursor.fetchall()

    return send


class Replay:
    def __init__(self, url: str, recorded: Recorded) -> None:
        self.send = through_sqlite(url) if url.startswith("sqlite") else through_psycopg(url)
        self.creates, self.claims = iter(recorded.creates), iter(recorded.claims)
        self.completes = recorded.completes

    async def answer(self, request: Request, following: Iterator[Replayed]) -> Response:
        await request.body()
        return await asyncio.get_running_loop().run_in_executor(one_writer, self._run, following)

    def _run(self, following: Iterator[Replayed]) -> Response:
        replayed = next(following)
        self.send(replayed.statements)
        return Response(replayed.body, replayed.status, media_type="application/json")


replay: Replay


@app.get("/hello")
async def hello() -> dict[str, str]:
    return {"hello": "world"}


@app.post("/v1/projects/{project_id}/instances")
async def create(request: Request, project_id: str) -> Response:
    return await replay.answer(request, replay.creates)


@app.post("/v1/projects/{project_id}/operations/claim")
async def claim(request: Request, project_id: str) -> Response:
    return await replay.answer(request, replay.claims)


@app.post("/v1/projects/{project_id}/operations/{operation_id}/complete")
async def complete(request: Request, project_id: str, operation_id: str) -> Response:
    return await replay.answer(request, iter([replay.completes[operation_id]]))


if __name__ == "__main__":
    replay = Replay(sys.argv[1], Recorded.load(Path(sys.argv[2])))
    uvicorn.run(app, port=int(sys.argv[3]), log_level="warning", access_log=False, server_header=False)
