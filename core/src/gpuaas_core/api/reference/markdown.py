"""The little Markdown the pages need."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(heads), "|---" * len(heads) + "|", *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def sentence(words: str) -> str:
    """The first letter large, a full stop at the end."""
    words = words[:1].upper() + words[1:]
    return words if words.endswith((".", "?", "!")) else f"{words}."
