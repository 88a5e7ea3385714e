"""Schemathesis against a really served core and the committed OpenAPI document: all checks, no findings.

Three callers: an administrator of a tenant (most cases, with ids that exist), a platform administrator, and a user
who signs out (alone, because it ends the token). Event streams never end by themselves and are left to test_events.
On PostgreSQL each route gets half as many made-up requests: most are answered before the store is asked.
"""

import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.tests.support import postgres, schemathesis_hooks
from core.tests.support.fixtures import Store, World
from core.tests.support.repeats import times
from core.tests.support.served import Served, calling, serving

CONTRACT = Path(__file__).parents[3] / "contracts" / "openapi.json"
PROGRAM = Path(sys.executable).parent / "schemathesis"
STREAMS = "/events/stream$"
SIGN_OUT = "^/v1/sign-out$"
EXAMPLES, FEWER = times(usual=2 if postgres.CHOSEN else 4, soak=15), times(usual=1, soak=5)
# The cases of the coverage phase depend on the contract, not on the store, so one store is enough for them.
PHASES = ["--phases", "examples,fuzzing,stateful"] if postgres.CHOSEN and not times(usual=0, soak=1) else []
HOOKS = {"SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(Path(schemathesis_hooks.__file__).parent)}

# A request may fit the schema and still not fit the world: an allocation that is in use, inputs the app does not know,
# a cursor from another store. Those answers are problem documents too and are checked as such.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "401", "403", "404", "409", "410", "412", "422", "428", "429"]

[phases.coverage]
unexpected-methods = ["DELETE", "OPTIONS"]

[parameters]
"query.wait_s" = 0
{parameters}

{dictionaries}
"""


def _config(folder: Path, ids: dict[str, list[str]]) -> Path:
    """Ids that exist, most of the time; the rest of the time whatever Schemathesis thinks of."""
    parameters = [f'"path.{name}" = {{ dictionary = "{name}", probability = 0.7 }}' for name in ids]
    dictionaries = [f"[dictionaries.{name}]\nvalues = {json.dumps(values)}" for name, values in ids.items()]
    path = folder / "schemathesis.toml"
    path.write_text(CONFIG.format(parameters="\n".join(parameters), dictionaries="\n".join(dictionaries)))
    return path


async def _furnished(served: Served, world: World) -> dict[str, list[str]]:
    """One instance that runs, one whose deploy failed: something to look at, to retry and to take down."""
    async with calling(served, world) as there:
        running = await there.running(name="runs")
        failed = await there.deploy(there.allocations[1], "failed")
        await there.fail(await there.claim())
    operations = [running["last_operation_id"], failed["operation"]["id"]]
    return {
        "project_id": [world.red],
        "tenant_id": [world.tenant],
        "node_id": list(world.nodes),
        "allocation_id": [*world.allocations, world.blue_allocation],
        "instance_id": [running["id"], failed["instance"]["id"]],
        "operation_id": operations,
        "member_id": [member["id"] for member in running["members"]],
        "account_id": [world.second_id],
        "app_slug": ["echo"],
        "version": ["1.0.0"],
    }


@dataclass
class Seen:
    who: str
    cases: int
    failures: int


def _run(served: Served, who: str, token: str | None, config: Path, *words: str, examples: int = EXAMPLES) -> Seen:
    argv = [str(PROGRAM), "--config-file", str(config), "run", str(CONTRACT), "--url", served.url, "--no-color"]
    argv += ["--checks", "all", "--max-examples", str(examples), "--seed", "1", "--generation-deterministic"]
    argv += ["--header", f"Authorization: Bearer {token}", "--request-timeout", "120", "--warnings", "off"]
    argv += ["--max-response-time", "120"]  # a password is hashed slowly on purpose, and the machine may be busy
    argv += ["--workers", "1", "--suppress-health-check", "all", *words]  # two threads upset CPython 3.11's ast
    env = os.environ | HOOKS
    done = subprocess.run(argv, capture_output=True, text=True, timeout=2400, check=False, env=env, cwd=config.parent)
    assert done.returncode == 0, f"{who}:\n" + done.stdout[-12_000:] + done.stderr[-2_000:]
    generated = re.search(r"Test cases:\s+(\d+) generated, (\d+) passed", done.stdout)
    assert generated, done.stdout[-3_000:]
    return Seen(who, int(generated[1]), int(generated[1]) - int(generated[2]))


@pytest.mark.timeout(2700)
async def test_schemathesis_finds_nothing(
    store: Store, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started, before = time.monotonic(), _cpu()
    with serving(store, tmp_path) as served:
        known = _config(_folder(tmp_path, "known"), await _furnished(served, world))
        unknown = _config(_folder(tmp_path, "unknown"), {})
        rest = ["--exclude-path-regex", f"{STREAMS}|{SIGN_OUT}"]
        seen = await asyncio.gather(
            asyncio.to_thread(_run, served, "tenant admin", world.boss.token, known, *rest, *PHASES),
            asyncio.to_thread(
                _run, served, "platform admin", world.admin.token, unknown, *rest, "--phases", "fuzzing", examples=FEWER
            ),
        )
        seen += [_run(served, "signs out", world.viewer.token, unknown, "--include-path-regex", SIGN_OUT)]
    cases, took, cpu = sum(one.cases for one in seen), time.monotonic() - started, _cpu() - before
    with capsys.disabled():
        print(f"\nschemathesis: {cases} cases, 0 findings, {took:.0f} s ({cpu:.0f} s of CPU)")
    assert all(one.failures == 0 for one in seen), seen
    assert cases > (500 if PHASES else 2_000), "green because idle"


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name
