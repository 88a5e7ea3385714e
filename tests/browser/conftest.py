"""One scene and one browser for all of these tests: starting them takes longer than most of what they do."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.support.browser_stack import Scene, scene
from tests.browser.support.pages import Visit, chromium, visiting


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with scene(tmp_path_factory.mktemp("scene"), port) as made:
        yield made


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def visit(browser: Browser, stage: Scene, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A window of its own; whatever it complains about fails the test."""
    how: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}} | getattr(request, "param", {})
    with visiting(browser, stage, **how) as opened:
        yield opened
        opened.quiet()
