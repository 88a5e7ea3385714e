"""Markdown helpers for the reference pages. Lines stay short: tables have short cells, longer texts are wrapped
lists."""

import re
from collections.abc import Iterable, Sequence

WIDTH = 116
_PIECE = re.compile(r"(?:[^\s`]*`[^`]*`[^\s`]*)+|\S+")  # code in backticks is never split


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(heads), "|---" * len(heads) + "|", *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def item(text: str, *below: str) -> str:
    """Format one item of a list, with the nested items below it."""
    lines = _wrapped("- ", text)
    for one in below:
        lines += ["  " + line for line in _wrapped("- ", one)]
    return "\n".join(lines) + "\n"


def paragraph(text: str) -> str:
    return "\n".join(_wrapped("", text)) + "\n"


def _wrapped(mark: str, text: str) -> list[str]:
    lines: list[str] = []
    line = mark
    for piece in _PIECE.findall(text):
        if line.strip() != mark.strip() and len(line) + 1 + len(piece) > WIDTH:
            lines.append(line)
            line = " " * len(mark)
        line += piece if not line.strip() or line == mark else f" {piece}"
    return [*lines, line]


def code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def sentence(words: str) -> str:
    """Capitalize the first letter, and add a full stop unless the text ends with a full stop,
    question or exclamation mark."""
    words = words[:1].upper() + words[1:]
    return words if words.endswith((".", "?", "!")) else f"{words}."
