"""Request and response models of the policy API."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from ..kit.wire import Input, Keepable, Moment, Slug, View, describe_pattern
from . import evaluate
from .evaluate import NEEDS_ENABLING

_NAME = describe_pattern(
    r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$",
    "1 to 63 lower-case letters, digits and ._-, not beginning or ending with one of ._-",
)
Name = Annotated[str, StringConstraints(pattern=_NAME)]
Mode = Literal["tenant_dedicated", "platform_managed"]
ControlPlaneScope = Literal["project", "tenant", "platform"]
BoundaryMode = Literal["tenant_isolated", "shared_service"]
Reason = Annotated[str, StringConstraints(max_length=400), Keepable]


class Rule(Input):
    """An allow-list (`only`) and a deny-list (`deny`) of exact names. An empty `only` allows nothing; a name in both
    lists is denied."""

    only: list[Name] | None = Field(None, max_length=200, description="allow only these")
    deny: list[Name] | None = Field(None, max_length=200, description="deny these, regardless of other policies")

    @model_validator(mode="after")
    def _says_something(self) -> "Rule":
        if self.only is None and self.deny is None:
            raise ValueError("a rule needs `only`, `deny` or both")
        return self


class ModeRule(Rule):
    only: list[Mode] | None = Field(None, max_length=10)  # type: ignore[assignment] - fewer names
    deny: list[Mode] | None = Field(None, max_length=10)  # type: ignore[assignment]


class ScopeRule(Rule):
    only: list[ControlPlaneScope] | None = Field(None, max_length=10)  # type: ignore[assignment]
    deny: list[ControlPlaneScope] | None = Field(None, max_length=10)  # type: ignore[assignment]


class BoundaryRule(Rule):
    only: list[BoundaryMode] | None = Field(None, max_length=10)  # type: ignore[assignment]
    deny: list[BoundaryMode] | None = Field(None, max_length=10)  # type: ignore[assignment]


class Rules(Input):
    """Rules per field; an omitted field is not restricted by this policy."""

    apps: Rule | None = None
    regions: Rule | None = None
    skus: Rule | None = None
    artifact_sources: Rule | None = None
    operating_modes: ModeRule | None = None
    control_plane_scopes: ScopeRule | None = None
    tenant_boundary_modes: BoundaryRule | None = None
    runtime_backends: Rule | None = None

    def stored(self) -> evaluate.Rules:
        return self.model_dump(exclude_none=True)


class SetPolicy(Input):
    rules: Rules = Field(default_factory=Rules)
    reason: Reason = Field("", description="why; shown in every refusal")


class Enables(Input):
    platform_managed: list[Slug] = Field(max_length=200, description="apps the platform offers to run itself")

    def stored(self) -> evaluate.Enables:
        return self.model_dump()


class SetPlatformPolicy(SetPolicy):
    enables: Enables | None = Field(None, description="modes that only a platform policy can enable")


class PolicyView(View):
    id: str
    name: str
    scope_kind: str
    scope_id: str
    rules: dict[str, Any] | None = Field(description="null: unreadable, so the policy refuses everything")
    enables: dict[str, Any] | None
    reason: str
    readable: bool
    etag: str = Field(description="send it as If-Match to change or remove this revision")
    updated_by: str
    created_at: Moment
    updated_at: Moment


class RulingView(View):
    field: str
    value: str | None = Field(description="null: every value that no policy lists")
    allowed: bool
    reason: str
    level: str | None = Field(description="the deciding level; null: no policy restricts it")
    matched: list[str] = Field(description="ids of the policies that refuse, or that list the allowed value")


class FieldView(View):
    field: str
    only: list[str] | None = Field(description="the intersection of all allow-lists; null: there is no allow-list")
    denied: list[str]
    values: list[RulingView]
    others: RulingView


class EffectiveView(View):
    project_id: str
    app_slug: str | None
    fields: list[FieldView]
    enables: dict[str, list[str]] = Field(description=f"apps for which the platform enables {NEEDS_ENABLING}")
    policies: list[str] = Field(description="ids of the policies that were evaluated")
