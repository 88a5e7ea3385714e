"""The page of answered open items names tests: each of them exists, so that no answer outlives its proof."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "slurm-open-items.md").read_text()
NAMED = re.findall(r"^- `([\w/]+\.py)::(test_\w+)`$", PAGE, re.MULTILINE)


def test_every_test_that_the_page_names_exists() -> None:
    missing = [f"{file}::{name}" for file, name in NAMED if not _defines(ROOT / file, name)]
    assert not missing, f"docs/slurm-open-items.md names tests that are gone or renamed: {missing}"


def test_every_item_has_an_answer_with_a_test() -> None:
    items = re.split(r"^## \d\. ", PAGE, flags=re.MULTILINE)[1:]
    assert len(items) == 7
    assert all("::test_" in item for item in items)


def _defines(file: Path, name: str) -> bool:
    return file.exists() and re.search(rf"^(async )?def {name}\(", file.read_text(), re.MULTILINE) is not None
