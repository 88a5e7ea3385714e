"""What people say when members come and go."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ..kit.wire import Id, Input, Sentence, Whole, YesNo
from .schemas import Key


class AddMembers(Input):
    component_key: Key
    allocation_ids: Annotated[list[Id], Field(min_length=1, max_length=100)]
    validate_only: YesNo = False


class Emptying(Input):
    """How a member is emptied before it is drained, removed or replaced."""

    reason: Sentence | None = None
    deadline_s: Whole | None = Field(default=None, ge=0, le=7 * 24 * 3600, description="how long work may go on")
    at_deadline: Literal["give_back", "requeue"] | None = Field(
        default=None,
        description="what happens to work that still goes on then: the member is given back to it (the default), or the"
        " work goes back to where it waited and starts anew elsewhere",
    )

    @model_validator(mode="after")
    def _needs_a_deadline(self) -> Self:
        if self.at_deadline and self.deadline_s is None:
            raise ValueError("at_deadline needs deadline_s (0: at once)")
        return self


class DrainMember(Emptying):
    pass


class Leaving(Emptying):
    """A member that goes. If its machine is gone, too, nobody can clean it: that is not said without a reason."""

    host_is_gone: YesNo = Field(
        default=False, description="the machine does not come back: fence it, and record that it was not cleaned"
    )

    @model_validator(mode="after")
    def _justified(self) -> Self:
        if self.host_is_gone and len(self.reason or "") < 3:
            raise ValueError("host_is_gone needs a reason of at least 3 characters")
        return self

    @property
    def params(self) -> dict[str, Any]:
        said = {"reason": self.reason, "deadline_s": self.deadline_s, "at_deadline": self.at_deadline}
        return said | {"host_is_gone": self.host_is_gone or None}


class RemoveMember(Leaving):
    validate_only: YesNo = False


class NamedMembers(Input):
    member_ids: Annotated[list[Id], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len(set(self.member_ids)) != len(self.member_ids):
            raise ValueError("a member is named twice")
        return self

    @property
    def params(self) -> dict[str, Any]:
        return self.model_dump(exclude={"member_ids"})


class AskMembers(NamedMembers):
    reason: Sentence | None = None


class EmptyMembers(NamedMembers, Emptying):
    """To drain or remove them."""


class ReplaceMember(Leaving):
    allocation_id: Id
