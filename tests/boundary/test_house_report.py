"""The house report counts what it says, and fails only when a count has grown."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "house_report.py"
spec = importlib.util.spec_from_file_location("house_report", SCRIPT)
assert spec
assert spec.loader
report = importlib.util.module_from_spec(spec)
spec.loader.exec_module(report)


def test_a_line_with_two_banned_words_counts_once_and_a_part_of_a_word_does_not() -> None:
    assert report.lines_with_words("Nobody and somebody\n`drained_by_somebody`\nThe operator\n") == 1


def test_a_line_is_long_above_the_limit_only() -> None:
    assert report.long_lines("x" * report.LONG + "\n" + "x" * (report.LONG + 1)) == 1


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(a: Any, *b: dict[str, Any], c: int) -> Row[Any]: ...", 3),
        ("async def f(a: int) -> None:\n    b: Any = 1", 0),
        ("class A:\n    def f(self, **more: Any) -> None: ...", 1),
    ],
)
def test_any_counts_once_for_each_parameter_and_result_that_names_it(source: str, count: int) -> None:
    assert report.untyped(source) == count


def test_it_fails_only_above_a_limit_and_an_unknown_count_may_not_exist() -> None:
    limits = {"a": 2, "b": 2, "c": 2}
    assert report.above({"a": 1, "b": 2, "c": 3, "d": 1}, limits) == ["c", "d"]
    printed = list(report.lines({"a": 1, "c": 3}, limits))
    assert printed[0].endswith("lower the limit to 1")
    assert printed[1].endswith("ABOVE THE LIMIT")


def test_every_limit_belongs_to_a_count_that_is_printed() -> None:
    assert set(report.LIMITS) == set(dict(report.count_all(report.ROOT)))
