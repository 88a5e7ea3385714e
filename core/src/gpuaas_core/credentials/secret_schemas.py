"""Wire models of runtime secrets: names and versions, never a value."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..kit.wire import Input, Key, Moment, View, Whole
from ..operations.schemas import ClaimReport


class NameSecret(Input):
    name: Key


class GenerateSecret(NameSecret):
    length: Whole = Field(32, ge=16, le=256)
    alphabet: Literal["alphanumeric", "hex", "digits"] = "alphanumeric"


class IssueSecret(GenerateSecret):
    value: Annotated[str, StringConstraints(min_length=1, max_length=16_384)] | None = Field(
        None, description="instead of a generated one; it is sealed and never shown again"
    )


class ClaimSecret(ClaimReport, GenerateSecret):
    pass


class AskSecret(ClaimReport, NameSecret):
    version: Whole | None = Field(None, ge=1, le=1_000_000, description="the newest one by default")


class SecretView(View):
    """A secret without its value."""

    id: str
    name: str
    version: int
    origin: str
    created_by: str
    created_at: Moment


class SecretGoneView(View):
    name: str
    versions: int


class SealedSecretView(View):
    name: str
    version: int
    sealed: Annotated[str, Field(description="a JWE for the caller's registered key; inside, a JWS of the platform")]
    expires_in_s: int
