"""Output: tables for people, JSON and YAML for scripts. Used by every command.

rich is imported only when a table is drawn. The format of `-o` is stored here (`set_format`) for the whole command.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {
    "healthy": "green",
    "running": "green",
    "ready": "green",
    "active": "green",
    "succeeded": "green",
    "progressing": "cyan",
    "provisioning": "cyan",
    "queued": "cyan",
    "requested": "cyan",
    "deleting": "cyan",
    "degraded": "yellow",
    "drained": "yellow",
    "needs_attention": "yellow",
    "unknown": "yellow",
    "failed": "red",
    "unhealthy": "red",
}


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False, emoji=False)


_format = "json"


def set_format(output: str) -> None:
    """Set the format that `as_json` prints: YAML if `output` is "yaml", otherwise JSON."""
    global _format
    _format = "yaml" if output == "yaml" else "json"


def as_json(value: Any) -> None:
    """Print data for scripts, as JSON or YAML."""
    import msgspec

    if _format == "yaml":
        print(_yaml(value), end="")
    else:
        print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def one_of_many(value: Any) -> None:
    """Print one item of a stream: a line of JSON, or a YAML document."""
    import msgspec

    text = f"---\n{_yaml(value)}" if _format == "yaml" else msgspec.json.encode(value).decode() + "\n"
    print(text, end="", flush=True)


def _yaml(value: Any) -> str:
    import msgspec
    import yaml

    return yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True, width=120)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str = "None.") -> None:
    """Print a table: with colours and wrapped lines on a terminal; in a pipe with plain, complete columns, without
    loading rich. Without rows the text `empty` is printed."""
    if not rows:
        print(empty)
    elif sys.stdout.isatty():
        _draw(columns, rows)
    else:
        _write([columns, *rows])


def facts(rows: Iterable[tuple[str, str]]) -> None:
    """Print one name with its value per line; names with an empty value are omitted."""
    known = [row for row in rows if row[1]]
    if sys.stdout.isatty():
        _draw(None, known)
    else:
        _write(known)


def _write(rows: Sequence[Sequence[str]]) -> None:
    cells = [[" ".join(cell.split()) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _draw(columns: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table

    screen = console()
    if columns and columns[0] in NAMING and columns[-1] == "ID" and not _fit(_whole(columns, rows), screen.width):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    if columns and not _fit(_floors(columns, rows), screen.width):
        return _cards(columns, rows)
    drawn = Table(box=None, pad_edge=False, show_header=columns is not None, header_style="bold")
    floors = _floors(columns, rows) if columns else [0, 0]
    for column, floor in zip(columns or ("", "value"), floors, strict=True):
        style = "bold" if not column else ""
        drawn.add_column(column, no_wrap=column in ("", "ID"), overflow="fold", style=style, min_width=floor)
    for row in rows:
        drawn.add_row(*(coloured(cell) for cell in row))
    return screen.print(drawn)


NAMING = ("NAME", "MEMBER", "PROJECT", "IN POLICIES")  # commands accept these as well as the id
LONGEST_WORD = 32


def _floors(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the minimum width of each column: the length of its longest word, at most LONGEST_WORD."""
    cells = zip(columns, *rows, strict=True)
    return [min(LONGEST_WORD, max(len(word) for text in one for word in text.split() or [""])) for one in cells]


def _whole(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(text) for text in one) for one in zip(columns, *rows, strict=True)]


def _fit(widths: list[int], screen: int) -> bool:
    return sum(widths) + 2 * len(widths) <= screen


def _cards(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print each row as a list of column names and values, for a terminal that is too narrow for a table."""
    for number, row in enumerate(rows):
        if number:
            print()
        _draw(None, [(column.lower(), cell) for column, cell in zip(columns, row, strict=True) if cell])


def coloured(cell: str) -> str:
    from rich.markup import escape

    colour = COLOURS.get(cell)
    return f"[{colour}]{cell}[/]" if colour else escape(cell)


def ago(moment: str | None, now: datetime | None = None) -> str:
    """Format a time as `2 min ago`; "" for None."""
    if not moment:
        return ""
    seconds = max(0, int(((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def lasting(seconds: float) -> str:
    """Format a duration: `0.4 s`, `12 s`, `3 min 20 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def gpus(node_facts: dict[str, Any]) -> str:
    """Format the GPUs of a node: `2 × A100`, or a dash."""
    models = [str(gpu.get("model") or "gpu") for gpu in node_facts.get("gpus") or []]
    return ", ".join(f"{models.count(m)} × {m}" for m in dict.fromkeys(models)) or "-"


def size(node_facts: dict[str, Any]) -> str:
    """Format CPUs and memory of a node: `8 CPUs, 31 GB`."""
    cpus, memory = node_facts.get("cpus"), node_facts.get("memory_mb")
    return f"{cpus} CPUs, {round(memory / 1024)} GB" if cpus and memory else "-"


def price(micros: int, currency: str) -> str:
    """Format a price given in millionths: `23.50 EUR`."""
    whole, rest = divmod(micros, 1_000_000)
    return f"{whole}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')} {currency}"


def bundle(value: dict[str, Any], indent: int = 0) -> None:
    """Print an app's access bundle of any shape: plain values first, then a section for each nested value."""
    space = "  " * indent
    plain = {name: inner for name, inner in value.items() if not _has_parts(inner)}
    _rows([(_words(name), _plain(inner)) for name, inner in plain.items()], space)
    sections = {name: inner for name, inner in value.items() if name not in plain}
    for number, (name, inner) in enumerate(sections.items()):
        if indent == 0 and (number or plain):
            print()
        print(f"{space}{_words(name)}")
        if isinstance(inner, dict):
            bundle(inner, indent + 1)
        elif isinstance(inner, str):
            print(inner.rstrip("\n"))  # not indented, so that the lines can be copied into a file
        else:
            _items(inner, indent + 1)


def _has_parts(value: Any) -> bool:
    return bool(value) and (isinstance(value, dict | list) or (isinstance(value, str) and "\n" in value.rstrip("\n")))


def _items(values: list[Any], indent: int) -> None:
    """Print a list. Flat items with the same keys are printed as aligned rows, others one below the other."""
    space = "  " * indent
    if all(isinstance(one, dict) and one.keys() == values[0].keys() and _is_flat(one) for one in values):
        _rows([tuple(_plain(cell) for cell in one.values()) for one in values], space)
        return
    for one in values:
        if isinstance(one, dict) and one:
            bundle(one, indent)
        else:
            print(space + _plain(one))


def _is_flat(one: dict[str, Any]) -> bool:
    return not any(isinstance(cell, str) and _has_parts(cell) for cell in one.values())


def _rows(rows: Sequence[Sequence[str]], space: str) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        print((space + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip())


def _words(name: str) -> str:
    return name.replace("_", " ")


def _plain(value: Any) -> str:
    return "-" if value in (None, [], {}) else str(value)
