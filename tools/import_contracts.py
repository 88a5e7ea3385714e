"""Contracts of our own for import-linter, beside its layers: registered in pyproject.toml under `contract_types`.

`own_tables`: the tables of a room are imported by that room only. It holds for every room of the package, also for a
room that is added later. Exceptions are listed one by one. The contract fails with an exception that is not needed any
more, and `tests/boundary/test_import_contracts.py` rejects a longer list.
"""

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.application.contract_utils import AlertLevel, remove_ignored_imports


class OwnTables(Contract):
    type_name = "own_tables"

    package = fields.StringField()
    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        remove_ignored_imports(graph, self.ignore_imports, AlertLevel.ERROR)  # type: ignore[arg-type] - fields are descriptors
        foreign = foreign_imports(graph, str(self.package))
        return ContractCheck(kept=not foreign, metadata={"foreign": foreign})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["foreign"]:
            output.print_error(line)
        output.print("Call the reads or the service of the room that owns the table.")


def foreign_imports(graph: ImportGraph, package: str) -> list[str]:
    return [
        f"{importer} -> {tables}"
        for tables in sorted(graph.find_descendants(package))
        if tables.endswith("tables")
        for importer in sorted(graph.find_modules_that_directly_import(tables))
        if room(importer, package) != room(tables, package)
    ]


def room(module: str, package: str) -> str:
    return module.removeprefix(f"{package}.").partition(".")[0]
