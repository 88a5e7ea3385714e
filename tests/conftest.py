"""One ground for all journeys of a run: booting it once keeps the suite short. Long files begin first, so that two who share
the files end at the same time."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuaas_lab.stack.up import cli_context
from ground import Ground, lab_name, standing

# The longest first, as measured; what is not here comes last. The browser's files (test_lab_…) come after those that use
# asyncio: Playwright leaves its own loop running in the process.
FIRST = [
    "sieve",
    "kill_journey",
    "hosts_in_trouble",
    "workers_in_trouble",
    "day_two",
    "settings",
    "faults",
    "ssh_refusals",
    "machine_access",
    "lab_journey",
    "health_journey",
    "node_tasks",
    "lab_trouble",
    "cycles",
    "ssh_for_people",
    "offline_host",
    "first_sbatch",
    "cluster_journey",
    "custody_outage",
]
PLACE = {f"test_{name}": place for place, name in enumerate(FIRST)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: PLACE.get(item.path.stem, len(PLACE)))


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    root: Path = tmp_path_factory.mktemp("ground")
    with standing(root, lab_name("journeys"), hosts=6) as made:
        made.bring("gpu1", "gpu2", "gpu4", "gpu5", "gpu6")
        made.bring("gpu3", project="training")
        cli_context(made.stack)
        yield made
