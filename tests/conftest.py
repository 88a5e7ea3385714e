"""One lab for all journeys of a run: booting it once keeps the suite short. Long files start first, so that two workers that
share the files finish at the same time."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuaas_lab.stack.up import cli_context

from tests.support.lab_stack import Ground, lab_name, standing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files marked `early` come first, in the order of their number. The browser's files come after those that use asyncio:
    Playwright leaves its own loop running in the process."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    early = item.get_closest_marker("early")
    return early.args[0] if early else 1_000


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    root: Path = tmp_path_factory.mktemp("ground")
    with standing(root, lab_name("journeys"), hosts=6) as made:
        made.bring("gpu1", "gpu2", "gpu4", "gpu5", "gpu6")
        made.bring("gpu3", project="training")
        cli_context(made.stack)
        yield made
