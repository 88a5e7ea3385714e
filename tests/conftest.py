"""One ground for all journeys of a run: booting it once keeps the suite short."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuaas_lab.stack.up import cli_context
from ground import Ground, lab_name, standing


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    root: Path = tmp_path_factory.mktemp("ground")
    with standing(root, lab_name("journeys"), hosts=6) as made:
        made.bring("gpu1", "gpu2", "gpu4", "gpu5", "gpu6")
        made.bring("gpu3", project="training")
        cli_context(made.stack)
        yield made
