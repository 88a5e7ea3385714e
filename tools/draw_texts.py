"""Draws texts of the product at random, to be read without the code beside them.

    .venv/bin/python tools/draw_texts.py --seed 11 [--count 80]

Four equal parts: errors with their ways out, event texts, help lines of the CLI, docstrings of the sources. The same
seed on the same commit draws the same texts, so that a reader and an author can talk about number 17.
"""

import argparse
import ast
import json
import random
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ["core/src", "sdk/src", "apps/slurm/src", "cli/src", "agent/src"]
GENERATED = ["sdk/src/gpuaas_sdk/client/models.py"]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=11)
    options.add_argument("--count", type=int, default=80)
    options.add_argument("--where", action="store_true", help="name the place of each text, for its author")
    chosen = options.parse_args()
    groups = [list(errors()), list(events()), list(help_lines()), list(docstrings())]
    draw = random.Random(chosen.seed)  # noqa: S311 - a sample, not a secret
    drawn = [text for group in groups for text in draw.sample(group, min(chosen.count // len(groups), len(group)))]
    for number, (kind, place, text) in enumerate(drawn, 1):
        print(f"{number:3} [{kind}{' ' + place if chosen.where else ''}] {text}")
    return 0


Text = tuple[str, str, str]  # kind, place, text


def errors() -> Iterator[Text]:
    for code, error in json.loads((ROOT / "contracts/errors.json").read_text()).items():
        yield "error", code, f"{code}: {error['title']}. {error['way_out']}"


def events() -> Iterator[Text]:
    contract = json.loads((ROOT / "contracts/asyncapi.json").read_text())
    for name, message in contract["components"]["messages"].items():
        yield "event", name, f"{message.get('name', name)}: {message['summary']}"


def help_lines() -> Iterator[Text]:
    for path in sorted((ROOT / "cli/src/gpuaas_cli/commands").glob("*.py")):
        for function in functions(path):
            if function.decorator_list and (text := ast.get_docstring(function)):
                yield "help", f"{path.stem} {function.name}", joined(text)


def docstrings() -> Iterator[Text]:
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if place in GENERATED or "migrations" in place or "cli/commands" in place:
                continue
            module = ast.parse(path.read_text())
            if text := ast.get_docstring(module):
                yield "module", place, joined(text)
            for function in functions(path):
                if text := ast.get_docstring(function):
                    yield "docstring", place, f"{function.name}: {joined(text)}"


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def joined(text: str) -> str:
    """The first paragraph, in one line."""
    return " ".join(text.split("\n\n")[0].split())


if __name__ == "__main__":
    raise SystemExit(main())
