"""A third kind of target, added by this module alone: its own table, lifecycle, scope, payer and routes.

The module is three programs. As a test it asks for surveys; as `core` it starts the platform with the new kind; as
`app` it works on surveys through HTTP, as an app of another team would. Core and app are killed at each of their
writes, before and after it takes effect, and each time everything ends as if nothing had happened. Nothing in
`gpuaas_core.operations` knows of any of this.
"""

import asyncio
import contextlib
import itertools
import json
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2
import pytest
from fastapi import APIRouter, Response
from gpuaas_core.authz.context import Context
from gpuaas_core.http.call import Caller, needs
from gpuaas_core.kit.ids import new_id
from gpuaas_core.kit.json_types import Json
from gpuaas_core.kit.lifecycle import Lifecycle
from gpuaas_core.kit.problems import NotFound, Problem
from gpuaas_core.kit.wire import Id, Input, Sentence, View, Whole
from gpuaas_core.operations import schemas
from gpuaas_core.operations.errors import NotRetryable
from gpuaas_core.operations.queue import queue
from gpuaas_core.operations.rows import OperationRow
from gpuaas_core.operations.targets import OperationKind, Order, Target, Wire, register
from gpuaas_core.operations.views import operation_view
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    create_engine,
    event,
    exists,
    insert,
    select,
    text,
    update,
)

from core.tests.support.killed_processes import Deaths, live_again_and_again

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]

# ── the kind: a survey of a tenant, answered by an app, paid for by one of the tenant's projects

surveys = Table(
    "surveys",
    MetaData(),
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), nullable=False),
    Column("payer_id", String(40), nullable=False),
    Column("question", String(200), nullable=False),
    Column("state", String(20), nullable=False),
    Column("asked", Integer, nullable=False),
    Column("answers", Integer, nullable=False),
    Column("last_operation_id", String(40)),
)
SURVEY = Lifecycle(
    "survey",
    {
        "drafted": {"ask": "asking"},
        "asking": {"answer": "answered", "fail": "failed", "undo": "drafted"},
        "failed": {"ask": "asking"},
        "answered": {},
    },
)
ASK = "ask"


class SurveyView(View):
    id: str
    tenant_id: str
    payer_id: str
    question: str
    state: str
    asked: int
    answers: int


class SurveyOperation(schemas.OperationView):
    survey_id: str


class SurveyClaim(schemas.ClaimView):
    operation: SurveyOperation
    survey: SurveyView


class AcceptedSurvey(View):
    survey: SurveyView
    operation: SurveyOperation


class SurveyProgress(schemas.Progress):
    asked: Whole | None = None


class CreateSurvey(Input):
    question: Sentence
    payer_id: Id


def survey_row(tx: Connection, survey_id: str, *, lock: bool = False, wait: bool = True) -> Row[Any] | None:
    query = select(surveys).where(surveys.c.id == survey_id)
    return tx.execute(query.with_for_update(skip_locked=not wait) if lock else query).first()


def change(ctx: Context, row: Row[Any], action: str | None = None, **more: Any) -> None:
    if action:
        more["state"] = SURVEY.after(row.state, action)
    ctx.tx.execute(update(surveys).where(surveys.c.id == row.id).values(**more))


class SurveyTarget(Target[Row[Any]]):
    kind = "survey"
    operation_kinds = MappingProxyType({ASK: OperationKind(deadline_s=600, phase_s=60)})
    wire = Wire(operation=SurveyOperation, claim=SurveyClaim, accepted=AcceptedSurvey, progress=SurveyProgress)

    def read(self, tx: Connection, operation: OperationRow) -> Row[Any]:
        row = survey_row(tx, operation.target_id)
        assert row is not None
        return row

    def lock(self, tx: Connection, operation: OperationRow) -> Row[Any]:
        row = survey_row(tx, operation.target_id, lock=True)
        assert row is not None
        return row

    def try_lock(self, tx: Connection, operation: OperationRow) -> Row[Any] | None:
        return survey_row(tx, operation.target_id, lock=True, wait=False)

    def order(self, tx: Connection, row: Row[Any], kind: str, params: Json | None, details: Json | None) -> Order:
        return Order(
            target_id=row.id,
            lock_key=row.id,
            scope_kind="tenant",
            scope_id=row.tenant_id,
            tenant_id=row.tenant_id,
            payer_id=row.payer_id,
            app_slug="echo",
            version="1.0.0",
            from_state=row.state,
        )

    def facts(self, row: Row[Any], operation: OperationRow) -> dict[str, Any]:
        return {"survey_id": row.id}

    def allocations(self, tx: Connection, row: Row[Any]) -> set[str]:
        return set()

    def refers_to(self, operation_id: ColumnElement[str]) -> ColumnElement[bool]:
        return exists().where(surveys.c.last_operation_id == operation_id)

    def operation_details(self, operation: OperationRow) -> dict[str, Any]:
        return {"survey_id": operation.target_id}

    def controller_view(self, tx: Connection, row: Row[Any], operation: OperationRow) -> dict[str, Any]:
        return {"survey": SurveyView.model_validate(row)}

    def accepted_view(self, tx: Connection, operation: OperationRow) -> AcceptedSurvey:
        shown = operation_view(tx, operation)
        return AcceptedSurvey.model_validate({"survey": self.read(tx, operation), "operation": shown})

    def on_queued(self, ctx: Context, row: Row[Any], operation: OperationRow) -> None:
        change(ctx, row, last_operation_id=operation.id)

    def on_claimed(self, ctx: Context, row: Row[Any], operation: OperationRow) -> Row[Any]:
        return row

    def changed_by(self, operation: OperationRow, report: Any) -> bool:
        return report.asked is not None

    def on_progress(self, ctx: Context, row: Row[Any], operation: OperationRow, report: Any) -> None:
        change(ctx, row, asked=report.asked)

    def on_last_report(self, ctx: Context, row: Row[Any], operation: OperationRow, report: Any) -> None:
        pass

    def on_succeeded(self, ctx: Context, row: Row[Any], operation: OperationRow, report: Any) -> None:
        change(ctx, row, "answer", answers=row.answers + 1)

    def on_failed(self, ctx: Context, row: Row[Any], operation: OperationRow, message: str, *, known: bool) -> None:
        change(ctx, row, "fail")

    def on_undone(self, ctx: Context, row: Row[Any], operation: OperationRow, message: str, *, why: str) -> None:
        change(ctx, row, "undo")

    def on_retried(self, ctx: Context, row: Row[Any], old: OperationRow, new: OperationRow) -> None:
        change(ctx, row, "ask")

    def on_abandoned(self, ctx: Context, row: Row[Any], operation: OperationRow, reason: str) -> None:
        change(ctx, row, "fail")

    def refuse_retry(self, row: Row[Any], operation: OperationRow, live: Sequence[OperationRow]) -> Problem | None:
        newest = row.last_operation_id == operation.id and SURVEY.allows(row.state, "ask")
        return None if newest else NotRetryable(f"The survey is {row.state}.")


router = APIRouter(prefix="/v1/tenants/{tenant_id}/surveys", tags=["surveys"])
TARGET = SurveyTarget()


@router.post("", status_code=202, response_model=AcceptedSurvey, **needs("apps.operation.retry", "tenant"))
async def create_survey(call: Caller, tenant_id: str, body: CreateSurvey) -> Response:
    def create(ctx: Context) -> AcceptedSurvey:
        survey_id = ctx.resource_id = new_id("srv")
        facts = {"id": survey_id, "tenant_id": tenant_id, "payer_id": body.payer_id, "question": body.question}
        ctx.tx.execute(insert(surveys).values(**facts, state="drafted", asked=0, answers=0))
        row = survey_row(ctx.tx, survey_id)
        assert row is not None
        operation = queue(ctx, TARGET, row, ASK)
        change(ctx, row, "ask")
        return TARGET.accepted_view(ctx.tx, operation)

    return await call.write(create, status=202)


@router.get("/{survey_id}", **needs("tenancy.tenant.read", "tenant"))
async def get_survey(call: Caller, tenant_id: str, survey_id: str) -> SurveyView:
    def read(ctx: Context) -> SurveyView:
        row = survey_row(ctx.tx, survey_id)
        if row is None or row.tenant_id != tenant_id:
            raise NotFound("There is no such survey in this tenant.")
        return SurveyView.model_validate(row)

    return await call.read(read)


def core(deaths: Deaths) -> None:
    """The platform with one kind of target more."""
    from gpuaas_core import main
    from gpuaas_core.api import app as assembly
    from gpuaas_core.settings import Settings

    register(TARGET)
    assembly.ROUTERS.append(router)
    engine = create_engine(Settings.read().database_url)
    surveys.create(engine, checkfirst=True)
    engine.dispose()
    build = main.build_platform

    def built(*args: Any, **more: Any) -> Any:
        platform = build(*args, **more)
        written = threading.local()

        @event.listens_for(platform.db.engine, "after_cursor_execute")
        def executed(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if re.match(r"(INSERT INTO|UPDATE) (operations|surveys)\b", statement):
                written.by = True

        @event.listens_for(platform.db.engine, "commit")
        def committing(_connection: Any) -> None:
            if getattr(written, "by", False):
                deaths.point()

        def committed(_seconds: float) -> None:
            if getattr(written, "by", False):
                written.by = False
                deaths.point()

        platform.db.on_write = committed
        return platform

    main.build_platform = built
    live_again_and_again(main.serve)


def app(deaths: Deaths, url: str, token: str) -> None:
    """Answers what is asked; `fail` fails unless it is a retry, `wait` goes on until it is canceled or abandoned."""

    def life() -> None:
        with httpx2.Client(base_url=url, timeout=30) as http:
            while True:
                try:
                    _work(http, token, deaths)
                except httpx2.TransportError:
                    time.sleep(0.02)

    live_again_and_again(life)


def _work(http: httpx2.Client, token: str, deaths: Deaths) -> None:
    def post(path: str, body: dict[str, Any]) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": secrets.token_hex(16)}
        deaths.point()
        answer = http.post(f"/v1/operations{path}", json=body, headers=headers)
        deaths.point()
        return answer

    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": secrets.token_hex(16)}
    body = {"app_slug": "echo", "holder": "surveyor", "wait_s": 5}
    answer = http.post("/v1/operations/claim", json=body, headers=headers)
    if answer.status_code != 200:
        return
    deaths.point()
    claim = answer.json()
    at, epoch = f"/{claim['operation']['id']}", {"claim_epoch": claim["claim_epoch"]}
    question, again = claim["survey"]["question"], claim["operation"]["retry_of"] is not None
    step = epoch | {"phase": "asking", "of": 2}
    post(f"{at}/progress", step | {"step": 1, "message": "Asking", "asked": 10})
    if question == "wait":
        lease = post(f"{at}/heartbeat", epoch)
        while lease.status_code == 200 and not lease.json()["cancel_requested"]:
            time.sleep(0.05)
            lease = http.post(f"/v1/operations{at}/heartbeat", json=epoch, headers=headers)
        error = {"code": "canceled", "message": "Stopped.", "way_out": "Ask again."}
        post(f"{at}/fail", epoch | {"error": error})
    elif question == "fail" and not again:
        error = {"code": "no_answer", "message": "No answer came.", "way_out": "Retry."}
        post(f"{at}/fail", epoch | {"error": error})
    else:
        post(f"{at}/progress", step | {"step": 2, "message": "Counting"})
        post(f"{at}/complete", epoch | {"message": "Answered"})


# ── the test


class Stage:
    """The platform and the app, each in a process of its own, and a tenant's administrator who asks."""

    def __init__(self, folder: Path, url: str, world: Any) -> None:
        self.folder, self.url, self.world = folder, url, world
        self.core_deaths, self.app_deaths = Deaths(folder / "kill-core"), Deaths(folder / "kill-app")

    async def scenario(self, http: httpx2.AsyncClient) -> None:
        """Claim, retry, cancel, abandon; crashes come from outside."""
        await self._until(http, await self._ask(http, "how many?"), "answered")
        failing = await self._ask(http, "fail")
        await self._until(http, failing, "failed")
        await self._do(http, failing, "retry", {})
        await self._until(http, failing, "answered")
        canceled = await self._ask(http, "wait")
        await self._until_claimed(http, canceled)
        await self._do(http, canceled, "cancel", {})
        await self._until(http, canceled, "drafted")
        abandoned = await self._ask(http, "wait")
        await self._until_claimed(http, abandoned)
        await self._do(http, abandoned, "abandon", {"reason": "the app hangs"})
        await self._until(http, abandoned, "failed")

    async def _ask(self, http: httpx2.AsyncClient, question: str) -> Any:
        body = {"question": question, "payer_id": self.world.blue}
        return await self._post(http, f"/v1/tenants/{self.world.tenant}/surveys", body)

    async def _do(self, http: httpx2.AsyncClient, accepted: Any, verb: str, body: dict[str, Any]) -> Any:
        return await self._post(http, f"/v1/operations/{accepted['operation']['id']}/{verb}", body)

    async def _post(self, http: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> Any:
        """Sent again with the same key until an answer comes."""
        headers = self._headers | {"Idempotency-Key": secrets.token_hex(16)}
        answer = await self._answer(lambda: http.post(path, json=body, headers=headers))
        assert answer.is_success, answer.text
        return answer.json()

    async def _until(self, http: httpx2.AsyncClient, accepted: Any, state: str) -> None:
        path = f"/v1/tenants/{self.world.tenant}/surveys/{accepted['survey']['id']}"
        await self._wait(http, path, lambda found: found["state"] == state, state)

    async def _until_claimed(self, http: httpx2.AsyncClient, accepted: Any) -> None:
        path = f"/v1/operations/{accepted['operation']['id']}"
        await self._wait(http, path, lambda found: found["status"] == "running", "running")

    async def _wait(self, http: httpx2.AsyncClient, path: str, good: Callable[[Any], bool], wanted: str) -> None:
        deadline = time.monotonic() + 60
        while True:
            found = (await self._answer(lambda: http.get(path, headers=self._headers))).json()
            if good(found):
                return
            assert time.monotonic() < deadline, f"{path} is not {wanted}: {found}"
            await asyncio.sleep(0.02)

    async def _answer(self, ask: Callable[[], Any]) -> httpx2.Response:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(httpx2.TransportError):
                return await ask()
            assert time.monotonic() < deadline, f"no answer; see the logs in {self.folder}"
            await asyncio.sleep(0.02)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.world.boss.token}"}


@contextlib.contextmanager
def staged(store: Any, folder: Path) -> Iterator[Stage]:
    from core.tests.support.fixtures import copy_store, remove_store
    from core.tests.support.served import Served, free_port

    copy_store(store, folder)
    served = Served(folder, free_port(), GPUAAS_CORE_LEASE_S="30")
    stage = Stage(folder, served.url, store.world)
    token = store.world.boss.token
    programs = (["core", str(stage.core_deaths.file)], ["app", str(stage.app_deaths.file), served.url, token])
    processes: list[subprocess.Popen[bytes]] = []
    with (folder / "log").open("ab") as log, contextlib.ExitStack() as ending:
        ending.callback(remove_store, folder)
        for words in programs:
            command = [sys.executable, "-m", "core.tests.crash.test_third_target", *words]
            process = subprocess.Popen(command, cwd=ROOT, env=served.environment, stdout=log, stderr=log)
            processes.append(process)
            ending.callback(process.wait)
            ending.callback(process.terminate)
        yield stage
        assert [one.poll() for one in processes] == [None, None], (folder / "log").read_text()[-3000:]


async def _sweep(stage: Stage, deaths: Deaths) -> int:
    """One scenario per point, until the process outlives one. How often it was killed."""
    async with httpx2.AsyncClient(base_url=stage.url, timeout=30) as http:
        await stage.scenario(http)
        for points in itertools.count():
            deaths.after(points)
            await stage.scenario(http)
            if deaths.outlived():
                return points
    raise AssertionError("unreachable")


@pytest.mark.timeout(1800)
async def test_a_third_kind_of_target_is_worked_on_and_survives_every_crash_of_core_and_app(
    store: Any, tmp_path: Path
) -> None:
    with staged(store, tmp_path) as stage:
        killed = {"core": await _sweep(stage, stage.core_deaths), "app": await _sweep(stage, stage.app_deaths)}
        scenarios = sum(killed.values()) + 4
        _check(stage, scenarios)
    assert min(killed.values()) >= 20, f"hardly any point was found: the test did not test: {killed}"


def _check(stage: Stage, scenarios: int) -> None:
    from core.tests.support.fixtures import looking

    with looking(stage.folder) as tx:
        states = Counter(map(tuple, tx.execute(text("select question, state, answers from surveys"))))
        ended = Counter(tx.execute(text("select status from operations where target_kind = 'survey'")).scalars())
        places = set(map(tuple, tx.execute(text("select scope_kind, scope_id, payer_id from operations"))))
        query = "select type, subject, data from events where type like 'apps.operation.%' order by sequence"
        told = [(row.type.rpartition(".")[2], row.subject, row.data) for row in tx.execute(text(query))]
    assert states == {
        ("how many?", "answered", 1): scenarios,
        ("fail", "answered", 1): scenarios,
        ("wait", "drafted", 0): scenarios,
        ("wait", "failed", 0): scenarios,
    }
    assert ended == {
        "succeeded": 2 * scenarios,
        "failed": scenarios,
        "canceled": scenarios,
        "needs_attention": scenarios,
    }
    assert places == {("tenant", stage.world.tenant, stage.world.blue)}
    epochs: dict[str, int] = {}
    counted = Counter((what, operation) for what, operation, _ in told)
    for what, operation, data in told:
        facts = data if isinstance(data, dict) else json.loads(data)
        if what == "claimed":
            assert facts["claim_epoch"] == epochs.get(operation, 0) + 1, "an epoch was given out twice"
            epochs[operation] = facts["claim_epoch"]
    ends = ("succeeded", "failed", "canceled", "needs_attention")
    for operation in {operation for _, operation, _ in told}:
        assert counted["queued", operation] == 1
        assert sum(counted[end, operation] for end in ends) == 1, "an end is written once"


if __name__ == "__main__":
    program, file, *more = sys.argv[1:]
    {"core": core, "app": app}[program](Deaths(Path(file)), *more)
