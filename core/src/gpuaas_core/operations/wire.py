"""Builds the request and response models of the operation routes from the models of the registered targets.

With one kind of target, the routes use its models. With several, a body may have the fields of every kind (a report is
then checked against its own target's model), and an answer is one of the views.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, create_model

from ..kit.wire import View
from . import schemas
from .targets import AnyTarget, Wire

M = TypeVar("M", bound=BaseModel)
Annotation: TypeAlias = type[View] | UnionType


@dataclass(frozen=True)
class Models:
    operation: Annotation  # one view, or one of several
    claim: Annotation
    accepted: Annotation
    canceled_batch: type[BaseModel]
    progress: type[schemas.Progress]
    complete: type[schemas.Complete]
    fail: type[schemas.Fail]


def models_of(targets: Iterable[AnyTarget]) -> Models:
    wires = [target.wire for target in targets]
    operation = _one_of(wires, lambda wire: wire.operation)
    return Models(
        operation=operation,
        canceled_batch=_canceled_batch(operation),
        claim=_one_of(wires, lambda wire: wire.claim),
        accepted=_one_of(wires, lambda wire: wire.accepted),
        progress=_all_fields([wire.progress for wire in wires], schemas.Progress),
        complete=_all_fields([wire.complete for wire in wires], schemas.Complete),
        fail=_all_fields([wire.fail for wire in wires], schemas.Fail),
    )


def _canceled_batch(operation: Annotation) -> type[BaseModel]:
    items: Any = list.__class_getitem__(operation)
    return create_model("CanceledBatchView", __base__=schemas.CanceledBatch, operations=(items, ...))


def _one_of(wires: list[Wire], pick: Callable[[Wire], type[View]]) -> Annotation:
    first, *others = dict.fromkeys(pick(wire) for wire in wires)
    found: Annotation = first
    for other in others:
        found = found | other
    return found


def _all_fields(models: list[type[M]], base: type[M]) -> type[M]:
    kinds = list(dict.fromkeys(models)) or [base]
    more = [model for model in kinds if not any(other is not model and issubclass(other, model) for other in kinds)]
    return more[0] if len(more) == 1 else create_model(base.__name__, __base__=tuple(more))
