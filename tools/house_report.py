"""The house report: counts what should become less, and fails when one of the counts has grown.

`make check` runs it. It counts lines with words that avoid the field's noun, lines of docs that are too long, and types
that say nothing. Each count has a limit below. A limit may only be lowered: when the report says that a count is below
its limit, lower the limit to it.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORDS = re.compile(r"\b(somebody|whoever|anew|nobody)\b", re.IGNORECASE)
LONG = 160
MOST_FILES = 20  # of a room, beside its __init__.py
PLACES = ["core", "sdk", "apps", "cli", "agent", "lab", "console/src", "tests", "bench", "docs"]
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]

LIMITS = {
    "words: core": 1,
    "words: sdk": 0,
    "words: apps": 0,
    "words: cli": 0,
    "words: agent": 0,
    "words: lab": 0,
    "words: console/src": 0,
    "words: tests": 4,
    "words: bench": 0,
    "words: docs": 2,
    "words: pages at the root": 0,
    "docs: lines over 160 characters": 0,
    "types: Row[Any] in core/src": 0,
    "types: Any in signatures of core/src": 7,
    "types: cast( in core/src": 0,
    "rooms of core with more than 20 files": 0,
    "types: Any in signatures of sdk/src": 3,
}


def main(argv: list[str]) -> int:
    """`--quiet` prints only what is above its limit."""
    counts = dict(count_all(ROOT))
    grown = above(counts, LIMITS)
    shown = {name: count for name, count in counts.items() if name in grown} if "--quiet" in argv else counts
    print("\n".join(lines(shown, LIMITS)), end="\n" if shown else "")
    return 1 if grown else 0


def count_all(root: Path) -> Iterator[tuple[str, int]]:
    for place in PLACES:
        yield f"words: {place}", sum(lines_with_words(path.read_text()) for path in texts(root, place))
    yield "words: pages at the root", sum(lines_with_words((root / page).read_text()) for page in PAGES)
    pages = [*(path for path in texts(root, "docs") if path.suffix == ".md"), *(root / page for page in PAGES)]
    yield f"docs: lines over {LONG} characters", sum(long_lines(page.read_text()) for page in pages)
    yield "types: Row[Any] in core/src", sum(path.read_text().count("Row[Any]") for path in sources(root, "core/src"))
    yield "types: cast( in core/src", sum(casts(path.read_text()) for path in sources(root, "core/src"))
    yield f"rooms of core with more than {MOST_FILES} files", large_rooms(sources(root, "core/src/gpuaas_core"))
    for place in ("core/src", "sdk/src"):
        yield (
            f"types: Any in signatures of {place}",
            sum(untyped(path.read_text()) for path in sources(root, place)),
        )


def lines(counts: dict[str, int], limits: dict[str, int]) -> Iterator[str]:
    for name, count in counts.items():
        limit = limits.get(name, 0)
        note = "ABOVE THE LIMIT" if count > limit else f"lower the limit to {count}" if count < limit else ""
        yield f"{name:40} {count:5} of {limit:5}  {note}".rstrip()


def above(counts: dict[str, int], limits: dict[str, int]) -> list[str]:
    return [name for name, count in counts.items() if count > limits.get(name, 0)]


def lines_with_words(text: str) -> int:
    return sum(1 for line in text.splitlines() if WORDS.search(line))


def long_lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if len(line) > LONG)


def untyped(source: str) -> int:
    """Parameters and results of functions whose annotation names `Any`, alone or inside another type."""
    return sum(
        1
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for annotation in annotations(node)
        if any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(annotation))
    )


def casts(source: str) -> int:
    """Calls of `typing.cast`; `sqlalchemy.cast` is SQL and not counted."""
    tree = ast.parse(source)
    imported = any(
        isinstance(node, ast.ImportFrom) and node.module == "typing" and any(name.name == "cast" for name in node.names)
        for node in ast.walk(tree)
    )
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return sum(1 for call in calls if isinstance(call.func, ast.Name) and call.func.id == "cast") if imported else 0


def large_rooms(files: Iterator[Path]) -> int:
    """Folders with more files than one noun needs; migrations are a list, not a room."""
    counts = Counter(path.parent for path in files if path.parent.name != "versions" and path.name != "__init__.py")
    return sum(1 for count in counts.values() if count > MOST_FILES)


def annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    args = function.args
    for argument in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if argument is not None and argument.annotation is not None:
            yield argument.annotation
    if function.returns is not None:
        yield function.returns


def sources(root: Path, place: str) -> Iterator[Path]:
    return (path for path in texts(root, place) if path.suffix == ".py")


def texts(root: Path, place: str) -> Iterator[Path]:
    """Tracked and new files, without those that are not text."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", place],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        path = root / name
        if path.is_file() and b"\0" not in path.read_bytes()[:8000]:
            yield path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
