"""The API guide cannot rot: its examples are played, in order, against a served core."""

import time
from pathlib import Path

import httpx2
import pytest

from core.tests.support import http_examples
from core.tests.support.fixtures import Store, assertion
from core.tests.support.served import Served

pytestmark = pytest.mark.any_store

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "api.md"


@pytest.fixture(scope="module")
def player(store: Store, served: Served) -> http_examples.Player:
    world = store.world
    signed = assertion(world.controller_key, world.controller_id, now=int(time.time()))
    known = {"project": world.red, "allocation": world.allocations[0], "assertion": signed}
    return http_examples.Player(httpx2.Client(base_url=served.url, timeout=20), known)


def test_every_example_of_the_api_guide_happens_as_it_is_written(player: http_examples.Player) -> None:
    for example in http_examples.examples(PAGE.read_text()):
        try:
            player.play(example)
        except AssertionError as wrong:
            raise AssertionError(f"docs/guides/api.md, line {example.line}: {wrong}") from wrong
    assert len(player.played) >= 18
    assert "{" not in "".join(player.played), "a name was never learned"


WRONG = [
    ("HTTP/1.1 204\n", "HTTP/1.1 204"),
    ('HTTP/1.1 200\n\n{"status": "fine"}', "the page says 'fine'"),
    ('HTTP/1.1 200\n\n{"mood": "…"}', "/mood is not in the answer"),
    ('HTTP/1.1 200\nX-Correlation-Id: not-sent-before\n\n{"status": "ok"}', "not-sent-before"),
]


@pytest.mark.parametrize(("answer", "complaint"), WRONG)
def test_an_example_that_is_not_true_is_found(player: http_examples.Player, answer: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        player.play(http_examples.Example(1, "GET /healthz\n", answer))
