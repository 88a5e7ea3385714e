"""Every `gpuaas …` that a page or an error prints is one that the command line understands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cyclopts import App
from cyclopts.exceptions import CycloptsError, MissingArgumentError
from gpuaas_cli.command_tree import build_app

APP = build_app()
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "apps").glob("*/docs/*.md"))]
SOURCES = sorted(path for room in ("core/src", "apps/slurm/src", "agent/src") for path in (ROOT / room).rglob("*.py"))
SPAN = re.compile(r"`(gpuaas [^`]+)`")
IN_CODE = re.compile(r"`(gpuaas (?!\w+ X )[^`\"'\n]+)`")
END = re.compile(r"\s#\s|\s[|<>]\s|\s·\s|;\s|\s{2,}(?!gpuaas )")


def fenced(text: str) -> Iterator[str]:
    """Lines of code blocks that are commands; several may stand beside each other."""
    for block in text.split("```")[1::2]:
        for line in block.splitlines():
            if line.strip().removeprefix("$ ").startswith("gpuaas "):
                yield from re.split(r"\s{2,}(?=gpuaas )", line.strip().removeprefix("$ "))


def spoken(text: str) -> Iterator[str]:
    """In sentences; often without what they are done to."""
    yield from (found.replace("\n", " ") for found in SPAN.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)))


def commands() -> Iterator[tuple[str, str, bool]]:
    for page in PAGES:
        text, name = page.read_text(), str(page.relative_to(ROOT))
        yield from ((name, one, True) for one in fenced(text))
        yield from ((name, one, False) for one in spoken(text))
    for (
        source
    ) in SOURCES:  # ways out of errors, and descriptions of the API; a verb that is put in later is passed over
        yield from ((source.name, one, False) for one in IN_CODE.findall(re.sub(r"{[^{}]*}", "X", source.read_text())))


@cache
def complaint(command: str, whole: bool) -> str:
    words = shlex.split(END.split(re.sub(r"[\[\]]", "", command))[0])
    if words[-1] == "…" and not whole:
        words.pop()
    try:
        APP.parse_args(words[1:], exit_on_error=False, print_error=False)
    except MissingArgumentError as error:
        return str(error) if whole else ""
    except CycloptsError as error:
        return str(error) or type(error).__name__
    return ""


def test_every_command_that_is_printed_somewhere_is_understood() -> None:
    found = list(commands())
    assert len(found) > 150
    wrong = [(where, one, problem) for where, one, whole in found if (problem := complaint(one, whole))]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("command", ["gpuaas instance frobnicate NAME", "gpuaas node list --colour red", "gpuaas iam"])
def test_one_that_is_not_would_be_found(command: str) -> None:
    assert bool(complaint(command, whole=True)) is (command != "gpuaas iam")


def leaves(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    for name in (one for one in app if not one.startswith("-")):
        below = app[name]
        if any(not one.startswith("-") for one in below):
            yield from leaves(below, (*path, name))
        else:
            yield " ".join((*path, name)), below


def test_every_argument_of_every_command_is_explained() -> None:
    found = dict(leaves(APP))
    assert len(found) > 100
    silent = {
        name: bare
        for name, one in found.items()
        if (
            bare := [
                a.name
                for a in one.assemble_argument_collection(parse_docstring=True)
                if a.show and not a.parameter.help
            ]
        )
    }
    assert silent == {}
