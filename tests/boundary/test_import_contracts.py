"""The contract on tables: each room imports its own, and the list of exceptions only shrinks."""

import tomllib
from pathlib import Path

from grimp import ImportGraph

from tools.import_contracts import room

ROOT = Path(__file__).parent.parent.parent
MOST_EXCEPTIONS = 1  # lower it when one is gone


def test_the_exceptions_only_shrink() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    own = next(contract for contract in contracts if contract["type"] == "own_tables")
    assert len(own["ignore_imports"]) <= MOST_EXCEPTIONS, "call the reads or the service of the room instead"


def test_a_foreign_table_is_found_and_an_own_one_is_not() -> None:
    from tools.import_contracts import foreign_imports

    graph = ImportGraph()
    for module in (
        "p",
        "p.a",
        "p.a.tables",
        "p.a.reads",
        "p.b",
        "p.b.service",
        "p.b.more_tables",
        "p.a.deep",
        "p.main",
    ):
        graph.add_module(module)
    for importer, imported in (
        ("p.a.reads", "p.a.tables"),
        ("p.b.service", "p.a.tables"),
        ("p.b.service", "p.a.reads"),
        ("p.main", "p.b.more_tables"),
    ):
        graph.add_import(importer=importer, imported=imported)
    assert foreign_imports(graph, "p") == ["p.b.service -> p.a.tables", "p.main -> p.b.more_tables"]
    assert room("p.a.deep.inside", "p") == "a"
