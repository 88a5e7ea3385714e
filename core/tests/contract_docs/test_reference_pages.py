"""The pages of docs/reference say everything the tables know, and no link of the docs leads nowhere."""

import importlib
import pkgutil
import re
from pathlib import Path

import gpuaas_core
import pytest
from gpuaas_core.api.app import api_routes, build_app, build_platform
from gpuaas_core.authz.permissions import PERMISSIONS, ROLES
from gpuaas_core.contract_docs.reference.lifecycles import LIVES
from gpuaas_core.events.event_log import TYPES
from gpuaas_core.events.shapes import FAMILIES, FIELDS, Undescribed, family, fields
from gpuaas_core.kit.lifecycle import Lifecycle
from gpuaas_core.kit.problems import CATALOGUE

pytestmark = pytest.mark.any_store

HOUSE = Path(__file__).parents[3]
PAGES = HOUSE / "docs" / "reference"
WRITTEN = [*HOUSE.glob("*.md"), *HOUSE.glob("docs/**/*.md")]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def said(name: str) -> str:
    return (PAGES / name).read_text()


def test_every_error_is_in_the_catalogue_under_its_status() -> None:
    section = {}
    for part in said("errors.md").split("\n## ")[1:]:
        section |= {code: part[:3] for code in re.findall(r"^- `([a-z_]+)`", part, re.MULTILINE)}
    assert section == {code: str(kind.status) for code, kind in CATALOGUE.items()}
    assert ": Other" not in said("errors.md"), "say in reference/errors.py what the new status means to a caller"


def test_every_permission_says_what_it_allows_who_holds_it_and_which_routes_ask() -> None:
    entries = re.split(r"^- `([a-z_.]+\.[a-z_.]+)`: ", said("permissions.md"), flags=re.MULTILINE)[1:]
    lines = dict(zip(entries[::2], (" ".join(text.split()) for text in entries[1::2]), strict=True))
    assert set(lines) == set(PERMISSIONS)
    for role, keys in ROLES.items():
        assert {key for key in keys if f"`{role}`" not in lines[key]} == set()
    app = build_app(build_platform(None, None), loops=False)  # type: ignore[arg-type] - routes only
    for route in api_routes(app):
        key = (route.openapi_extra or {})["x-permission"]
        for method in route.methods or ():
            assert key == "public" or f"`{method} {route.path}`" in lines[key]


def test_every_life_of_the_code_is_drawn_with_every_move() -> None:
    known = {id(life) for life, _ in LIVES.values()}
    found = [value for module in _states() for value in vars(module).values() if isinstance(value, Lifecycle)]
    assert found
    assert {id(life) for life in found} == known, "add the new life to reference/lifecycles.py"
    for title, (life, _) in LIVES.items():
        part = said("lifecycles.md").split(f"\n## {title}\n")[1].split("\n## ")[0]
        drawn = {
            (a, action, b)
            for a, b, acts in re.findall(r"    (\w+) --> (\w+): (.*)", part)
            for action in acts.split(", ")
        }
        moves = {(a, action, b) for a, row in life.moves.items() for action, b in row.items() if a != b}
        assert drawn == moves


def _states() -> list[object]:
    names = [m.name for m in pkgutil.walk_packages(gpuaas_core.__path__, "gpuaas_core.") if m.name.endswith("states")]
    return [importlib.import_module(name) for name in names]


def test_every_event_and_every_field_is_described() -> None:
    page = said("events.md")
    assert set(re.findall(r"^- `([a-z_]+\.[a-z_.]+)`: ", page, re.MULTILINE)) == set(TYPES)
    used = {name for start in FAMILIES for name in fields(start)}
    assert used == set(FIELDS), "a field without a meaning, or a meaning without a field"


def test_an_event_of_no_family_is_refused_with_the_place_to_describe_it() -> None:
    with pytest.raises(Undescribed, match=r"events/shapes\.py"):
        family("weather.changed")


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(HOUSE)))
def test_no_line_is_longer_than_people_read(path: Path) -> None:
    assert [line for line in path.read_text().splitlines() if len(line) > 160] == []


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(HOUSE)))
def test_no_link_leads_nowhere(path: Path) -> None:
    for target, anchor in LINK.findall(path.read_text()):
        if "://" in target:
            continue
        found = (path.parent / target).resolve() if target else path
        assert found.exists(), f"{path.name} links to {target}"
        if anchor and found.suffix == ".md":
            assert anchor in _anchors(found), f"{path.name} links to {target}#{anchor}"


def _anchors(path: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_every_setting_of_the_core_is_in_a_guide() -> None:
    source = (HOUSE / "core" / "src" / "gpuaas_core").rglob("*.py")
    named = {name for file in source for name in re.findall(r"GPUAAS_CORE_[A-Z0-9_]*[A-Z0-9]", file.read_text())}
    guides = "".join(file.read_text() for file in (HOUSE / "docs" / "guides").glob("*.md"))
    assert len(named) > 10
    assert {name for name in named if name not in guides} == set()
