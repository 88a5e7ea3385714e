"""The code map names every room and every package, so that a new one cannot be added without a place on it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAP = (ROOT / "docs" / "code-map.md").read_text()
ROOMS = ROOT / "core" / "src" / "gpuaas_core"


def named(section: str) -> set[str]:
    """What the first two columns of a section's table name in backticks."""
    text = MAP.split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\|([^|]*)\|([^|]*)\|", text, re.MULTILINE)
    return {name.strip("/") for pair in cells for cell in pair for name in re.findall(r"`([^`]+)`", cell)}


def test_every_room_of_the_core_is_on_the_map() -> None:
    rooms = {path.parent.name for path in ROOMS.glob("*/__init__.py")}
    assert len(rooms) > 15
    assert rooms - named("Rooms of the core") == set(), (
        "add a row to docs/code-map.md: what belongs there, what it calls"
    )


def test_every_package_is_on_the_map() -> None:
    packages = {str(path.parent.relative_to(ROOT)) for path in ROOT.glob("*/pyproject.toml")}
    packages |= {str(path.parent.relative_to(ROOT)) for path in ROOT.glob("apps/*/pyproject.toml")}
    assert "core" in packages
    assert packages - named("Packages") == set(), "add a row to docs/code-map.md"


def test_every_kind_of_thing_has_a_checklist() -> None:
    heads = re.findall(r"^## (.*)$", (ROOT / "docs" / "checklists.md").read_text(), re.MULTILINE)
    assert {"A room", "A route", "An event", "An error", "A step of an app", "A node task", "An app"} <= set(heads)
