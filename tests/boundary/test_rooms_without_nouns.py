"""The engine and machine access name no target, no app and no scheduler: a new kind of target needs no change there."""

import io
import re
import tokenize
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "core" / "src" / "gpuaas_core"
ROOMS = ("operations", "machine_access")
NOUNS = {"instance", "instances", "member", "members", "slurm", "ray", "scheduler", "schedulers"}
PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def nouns_in(source: str) -> list[str]:
    """`line: word` for every noun, alone or as a part of a name, in code, comments and texts; `isinstance` is none."""
    return [
        f"{token.start[0]}: {word}"
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type in (tokenize.NAME, tokenize.STRING, tokenize.COMMENT) or token.type in _TEXT
        for word in PARTS.findall(token.string)
        if word.lower() in NOUNS
    ]


_TEXT = {getattr(tokenize, name) for name in ("FSTRING_MIDDLE",) if hasattr(tokenize, name)}


@pytest.mark.parametrize("room", ROOMS)
def test_the_room_names_no_target_app_or_scheduler(room: str) -> None:
    files = sorted((CORE / room).glob("**/*.py"))
    assert files
    assert {str(file.relative_to(CORE)): found for file in files if (found := nouns_in(file.read_text()))} == {}


def test_a_noun_is_found_wherever_it_stands() -> None:
    source = 'def of(instance_id):\n    """Of a member."""\n    return isinstance(instance_id, RayTarget), "array"\n'
    assert nouns_in(source) == ["1: instance", "2: member", "3: instance", "3: Ray"]
