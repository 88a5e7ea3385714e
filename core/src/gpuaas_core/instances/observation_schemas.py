"""What an app's controller says of a running instance between operations."""

from pydantic import Field

from ..kit.wire import Id, Input, View, Whole
from .schemas import Condition, Detail, Health, Short


class MemberObservation(Input):
    member_id: Id
    runtime_state: Short | None = None
    runtime_version: Short | None = None
    adapter_detail: Detail | None = None


class Observation(Input):
    """The first two say what was looked at: as the instance was read before the look began."""

    last_operation_id: Id
    observed_generation: Whole = Field(ge=1)
    health: Health
    conditions: list[Condition] = Field(
        default_factory=list, max_length=50, description="those of other types stay as they are"
    )
    members: list[MemberObservation] = Field(
        default_factory=list, max_length=500, description="those that an operation works on are passed over"
    )
    access: Detail | None = Field(None, description="the whole access bundle anew; left out, it stays as it is")
    runtime_version: Short | None = None
    adapter_detail: Detail | None = Field(
        None, description="keys named here take the place of the same ones; null: gone"
    )


class ObservedView(View):
    instance_id: str
    changed: list[str] = Field(description="what is known anew: health, conditions, access, members …")
