"""Done when 5 of issue 6: every route is reached by some command, or left out for a reason one can read."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpuaas_cli.command_tree import build_app

from cli.tests.support import route_coverage
from cli.tests.test_entry import GROUPS, every_command
from sdk.tests.support.fake_platform import Call

# They talk to a platform without being about it, or without end, or to none at all.
NEITHER = {("login",), ("logout",), ("accept",), ("password",), ("explain",), ("completion",), ("events",), ("mcp",)}
NEITHER |= {("context", verb) for verb in ("list", "use", "remove")}
SENDS_NOTHING_TO_TEST = {("mcp",): "it serves until its client leaves (test_mcp.py)"}
SHOWS_AND_WAITS = {("instance", "watch"): "it watches already"}

Walked = dict[tuple[str, ...], list[Call]]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    found: Walked = {}
    for words, _, calls in route_coverage.walk(tmp_path_factory.mktemp("walk")):
        found.setdefault(words[:2] if words[0] in GROUPS else words[:1], []).extend(calls)
    return found


def test_every_route_is_reached_by_a_command_or_left_out_for_a_reason(walked: Walked) -> None:
    reached = {route_coverage.route_of(call) for calls in walked.values() for call in calls}
    missing = route_coverage.routes() - reached - set(route_coverage.ABSENT)
    assert not missing, (
        f"write a command for them (and walk it in reach.MORE), or say in reach.ABSENT why not: {missing}"
    )
    assert not set(route_coverage.ABSENT) & reached, "they are reached: take them out of reach.ABSENT"
    assert set(route_coverage.ABSENT) <= route_coverage.routes(), "they are gone: take them out of reach.ABSENT"


def test_every_command_is_walked(walked: Walked) -> None:
    missing = set(every_command()) - set(walked) - set(SENDS_NOTHING_TO_TEST)
    assert not missing, f"add them to LOOKING in test_commands.py, or to reach.MORE: {missing}"


def test_what_looks_can_be_watched_and_what_changes_can_be_repeated(walked: Walked) -> None:
    wrong = {}
    for command, calls in walked.items():
        if command in NEITHER or command in SHOWS_AND_WAITS:
            continue
        wanted = "--watch" if {call.method for call in calls} == {"GET"} else "--idempotency-key"
        if options(command) & {"--watch", "--idempotency-key"} != {wanted}:
            wrong[" ".join(command)] = f"common: {'Looking' if wanted == '--watch' else 'Changing'}"
    assert not wrong, f"take these options (options.py): {wrong}"


def options(command: tuple[str, ...]) -> set[str]:
    app = build_app()
    for word in command:
        app = app[word]
    return {name for argument in app.assemble_argument_collection() for name in argument.names}


def test_one_key_of_ones_own_goes_with_every_change(walked: Walked, tmp_path: Path) -> None:
    """The walk sent keys of the SDK's own making; none twice, or two commands would count as one."""
    keys = [call.key for calls in walked.values() for call in calls if call.method != "GET" and call.key]
    assert len(keys) == len(set(keys))
