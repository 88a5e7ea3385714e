"""Whatever event any test makes the platform emit, in this process, must fit the shape that is published for it."""

import functools
from collections.abc import Iterator
from typing import Any

import pytest
from gpuaas_core.events import event_log
from gpuaas_core.events.event_log import IDENTIFIERS
from gpuaas_core.events.shapes import data_schema, family
from jsonschema import Draft202012Validator


@functools.cache
def _validator(type_: str) -> Draft202012Validator:
    return Draft202012Validator(data_schema(family(type_)))


def check(one: event_log.Pending, correlation_id: str) -> None:
    data = dict.fromkeys(IDENTIFIERS) | one.data | {"correlation_id": correlation_id}
    wrong = [f"{error.json_path} {error.message}" for error in _validator(one.type).iter_errors(data)]
    assert not wrong, f"{one.type} is not as history/shapes.py says: {wrong}"


@pytest.fixture(autouse=True, scope="session")
def every_event_fits() -> Iterator[None]:
    before = event_log.append

    def append(tx: Any, pending: list[event_log.Pending], **ids: Any) -> None:
        for one in pending:
            if one.type in event_log.TYPES:
                check(one, ids["correlation_id"])
        before(tx, pending, **ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_log, "append", append)
        yield
