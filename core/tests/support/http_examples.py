"""Plays the HTTP examples of a Markdown page: each ```http block is a request, or the answer to the one before it.

`{name}` is filled in if it is known, and otherwise learned from the answer. `…` stands for anything. A JSON answer may have
more members than the page shows; a text answer may go on after what it shows.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

BLOCK = re.compile(r"^```http\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"\{([a-z_]+)\}")
ANYTHING = "…"


@dataclass
class Example:
    line: int
    request: str
    answer: str


@dataclass
class Player:
    http: httpx2.Client
    known: dict[str, str]
    played: list[str] = field(default_factory=list)

    def play(self, example: Example) -> None:
        start, headers, body = _parts(self._filled(example.request))
        method, path = start.split(" ")
        with self.http.stream(method, path, headers=headers, content=body or None) as answer:
            self._compare(answer, example)
        self.played.append(f"{method} {path.split('?')[0]}")

    def _compare(self, answer: httpx2.Response, example: Example) -> None:
        start, headers, body = _parts(example.answer)
        shown = "" if answer.headers.get("content-type", "").startswith("text/event-stream") else answer.read().decode()
        assert start == f"HTTP/1.1 {answer.status_code}", (
            f"the page says {start}, the core {answer.status_code}: {shown}"
        )
        if headers.get("Content-Type", "").startswith("text/"):
            lines = (line.rstrip("\n") for line in answer.iter_lines())
            for expected in body.strip().splitlines():
                self._text(next(lines), expected)
        elif body:
            self._value(json.loads(shown), json.loads(_quoted(body)), "")
        for name, expected in headers.items():
            self._text(answer.headers[name], expected)

    def _value(self, got: Any, expected: Any, where: str) -> None:
        if isinstance(expected, dict):
            for name, value in expected.items():
                assert name in got, f"{where}/{name} is not in the answer: {got}"
                self._value(got[name], value, f"{where}/{name}")
        elif expected == [ANYTHING]:
            assert isinstance(got, list), where
            assert got, where
        elif isinstance(expected, list):
            assert len(got) == len(expected), f"{where} has {len(got)} items: {got}"
            for number, value in enumerate(expected):
                self._value(got[number], value, f"{where}/{number}")
        elif isinstance(expected, str):
            self._text(str(got), expected, where)
        else:
            assert got == expected, f"{where} is {got!r}, the page says {expected!r}"

    def _text(self, got: str, expected: str, where: str = "") -> None:
        wanted = NAME.sub(lambda m: re.escape(self.known[m[1]]) if m[1] in self.known else m[0], _escaped(expected))
        wanted = NAME.sub(r"(?P<\1>.+)", wanted)
        found = re.fullmatch(wanted, got, re.DOTALL)
        assert found, f"{where} is {got!r}, the page says {expected!r}"
        self.known |= found.groupdict()

    def _filled(self, text: str) -> str:
        return NAME.sub(lambda m: self.known.get(m[1], m[0]), text)


def examples(page: str) -> Iterator[Example]:
    blocks = [(page.count("\n", 0, m.start()) + 1, m[1]) for m in BLOCK.finditer(page)]
    assert len(blocks) % 2 == 0, "every request is followed by its answer"
    for (line, request), (_, answer) in zip(blocks[::2], blocks[1::2], strict=True):
        assert answer.startswith("HTTP/1.1 "), f"line {line}: the answer is missing"
        yield Example(line, request, answer)


def _parts(text: str) -> tuple[str, dict[str, str], str]:
    head, _, body = text.partition("\n\n")
    start, *lines = head.strip().splitlines()
    return start, dict(line.split(": ", 1) for line in lines), body.strip()


def _quoted(body: str) -> str:
    """A bare {name} stands for a number."""
    return re.sub(r": (\{[a-z_]+\})", r': "\1"', body)


def _escaped(text: str) -> str:
    pieces = re.split(r"(\{[a-z_]+\}|…)", text)
    return "".join(".*" if p == ANYTHING else p if NAME.fullmatch(p) else re.escape(p) for p in pieces)
