"""No string of a person reaches a config file, sacctmgr or a shell unless it is a plain word."""

import pytest
from gpuaas_slurm import validate

ATTACKS = [
    "main\n", "main\nPartitionName=evil Nodes=ALL", "a;reboot", "a$(reboot)", "a`reboot`", "a'b", 'a"b', "a b", "a\tb", "a|b",
    "a&b", "a>b", "a=b", "a,b", "a#b", "a\\b", "../a", "a/..", "-a", "--help", "", "é", "a\x00b", "a\r", "A" * 300,
]  # fmt: skip
WORDS = ["cluster_name", "partition", "gpu_type", "account", "user", "node", "id", "step", "unit", "device", "hostname"]


@pytest.mark.parametrize("what", WORDS)
@pytest.mark.parametrize("value", ATTACKS)
def test_an_injection_is_refused_wherever_it_is_tried(what: str, value: str) -> None:
    with pytest.raises(validate.BadWord):
        validate.word(what, value)


@pytest.mark.parametrize("value", [None, 7, True, ["main"], {"a": 1}, b"main"])
def test_only_text_is_a_word(value: object) -> None:
    with pytest.raises(validate.BadWord):
        validate.word("partition", value)


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("cluster_name", "team-a_1"), ("partition", "main"), ("gpu_type", "a100"), ("account", "prj-1"), ("node", "worker0-abc"),
        ("device", "/dev/nvidia0"), ("device", "/dev/dri/renderD128"), ("hostname", "gpu1.example.org"),
        ("id", "op_01k9zzzzzzzzzzzzzzzzzzzzzz"),
    ],
)  # fmt: skip
def test_ordinary_words_pass(what: str, value: str) -> None:
    assert validate.word(what, value) == value


@pytest.mark.parametrize(
    ("what", "value"), [("partition", "default"), ("partition", "all"), ("user", "root"), ("account", "root")]
)
def test_words_that_mean_something_to_slurm_are_refused(what: str, value: str) -> None:
    with pytest.raises(validate.BadWord, match="reserved"):
        validate.word(what, value)


@pytest.mark.parametrize("value", ["10.88.0.11", "fe80::1", "gpu1"])
def test_an_address_is_a_number_or_a_name(value: str) -> None:
    assert validate.address(value) == value


@pytest.mark.parametrize("value", ["10.88.0.11\nX=1", "gpu1;x", "gpu1 )", ""])
def test_an_address_cannot_carry_more(value: str) -> None:
    with pytest.raises(validate.BadWord):
        validate.address(value)


@pytest.mark.parametrize("value", [0, 43201, True, 1.5, "60", None])
def test_minutes_are_whole_and_bounded(value: object) -> None:
    with pytest.raises(validate.BadWord):
        validate.whole("default_time_limit_minutes", value, 1, 43200)


@pytest.mark.parametrize(
    ("text", "made"), [("Team A!", "team-a"), ("a;rm -rf /", "a-rm-rf"), ("9lives", "x"), ("", "x"), ("ü", "x")]
)
def test_a_slug_is_always_a_plain_word(text: str, made: str) -> None:
    assert validate.slug(text, "x") == made


def test_an_unknown_input_is_named() -> None:
    with pytest.raises(validate.BadWord, match="prolog"):
        validate.known_keys({"prolog": "/bin/evil"}, {"partition"})
