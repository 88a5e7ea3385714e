"""Requests and responses of artifacts. A credential can be set but is never returned."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from ..kit.wire import Id, Input, Keepable, Moment, Slug, View, Whole, YesNo, describe_pattern

_VERSION = describe_pattern(
    r"^[A-Za-z0-9][A-Za-z0-9._+~-]{0,59}$", "1 to 60 letters, digits and ._+~-, beginning with a letter or digit"
)
_SHA256 = describe_pattern(r"^[0-9a-f]{64}$", "a SHA-256 digest as 64 lower-case hexadecimal digits")
_DIGEST = describe_pattern(r"^sha256:[0-9a-f]{64}$", "sha256: and 64 lower-case hexadecimal digits")
_REPOSITORY = describe_pattern(
    r"^[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*)*$",
    "names of lower-case letters and digits, joined by single ._- and separated by slashes",
)
_MEDIA_TYPE = describe_pattern(
    r"^[a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+$", "a media type such as application/octet-stream"
)
_WORD = describe_pattern(r"^[\x21-\x7e]+$", "printable ASCII characters without spaces")

Version = Annotated[str, StringConstraints(pattern=_VERSION)]
Sha256 = Annotated[str, StringConstraints(pattern=_SHA256)]
Digest = Annotated[str, StringConstraints(pattern=_DIGEST)]
Repository = Annotated[str, StringConstraints(max_length=200, pattern=_REPOSITORY)]
MediaType = Annotated[str, StringConstraints(max_length=120, pattern=_MEDIA_TYPE)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=_WORD)]
Reason = Annotated[str, StringConstraints(max_length=400), Keepable]
Url = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class Credential(Input):
    """The credential for a source: `basic` (username, password), `bearer` (token) or `s3` (key pair and region)."""

    kind: Literal["basic", "bearer", "s3"]
    username: Word | None = None
    password: Word | None = Field(None, repr=False)
    token: Word | None = Field(None, repr=False)
    access_key_id: Word | None = None
    secret_access_key: Word | None = Field(None, repr=False)
    region: Annotated[str, StringConstraints(max_length=60, pattern=_VERSION)] | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> "Credential":
        needed = PARTS[self.kind]
        given = {name for name, value in self if value is not None} - {"kind"}
        if given != needed:
            raise ValueError(f"a {self.kind} credential has exactly {', '.join(sorted(needed))}")
        return self


PARTS: dict[str, set[str]] = {
    "basic": {"username", "password"},
    "bearer": {"token"},
    "s3": {"access_key_id", "secret_access_key", "region"},
}


class CreateSource(Input):
    name: Slug
    kind: Literal["oci", "blob"]
    base_url: Url = Field(description="https; for `blob` sources the prefix of every path, for S3 including the bucket")
    port: Whole | None = Field(
        None, ge=1, le=65535, description="required if the address has a port other than the default"
    )
    credential: Credential | None = None


class CreatePlatformSource(CreateSource):
    private_addresses: YesNo = Field(
        False, description="allows plain http and addresses of the operator's own networks"
    )
    open_to_tenants: YesNo = Field(
        False, description="tenants may register artifacts of it, read with the platform's credential"
    )


class SetCredential(Input):
    credential: Credential | None = Field(description="replaces the current credential; null removes it")


class Decide(Input):
    reason: Reason = ""


class SourceView(View):
    id: str
    tier: str = Field(description="`platform` or `tenant`")
    name: str
    policy_name: str = Field(description="its name in policies under `artifact_sources`")
    kind: str
    base_url: str
    port: int | None
    private_addresses: bool
    open_to_tenants: bool
    credential_kind: str | None = Field(
        description="how the core authenticates; the credential itself is never returned"
    )
    state: str
    state_reason: str | None
    created_by: str
    created_at: Moment
    available_actions: list[str]


class Register(Input):
    """An artifact to register. A `blob` source needs `path`, and both `sha256` and `size` or neither; with neither, the
    content is read now. An `oci` source needs `repository` and `manifest`, and `layer` if the manifest has several
    layers. The core's own store needs the `sha256` of the pushed content."""

    name: Slug
    version: Version
    source_id: Id = "asrc_builtin"
    path: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    repository: Repository | None = None
    manifest: Digest | None = None
    layer: Digest | None = None
    sha256: Sha256 | None = None
    size: Whole | None = Field(None, ge=0, le=2**53)
    media_type: MediaType | None = None


class ArtifactView(View):
    id: str
    tier: str
    name: str
    version: str
    source_id: str
    source: str = Field(description="the source's name in policies")
    kind: str
    reference: dict[str, Any]
    sha256: str
    size: int
    media_type: str
    state: str
    created_by: str
    created_at: Moment
    withdrawn_at: Moment | None
    withdraw_reason: str | None
    available_actions: list[str]


class ProjectArtifactView(ArtifactView):
    """An artifact, and whether the project may use it.
    This depends on policies and on the states of source and artifact."""

    allowed: bool
    reason: str


class Resolve(Input):
    """The artifact to check, by id, or by name and version.
    A tenant's own artifact takes precedence over the platform's."""

    artifact_id: Id | None = None
    name: Slug | None = None
    version: Version | None = None
    app_slug: Slug | None = Field(None, description="also apply the policy of the project's entitlement to this app")

    @model_validator(mode="after")
    def _names_one(self) -> "Resolve":
        named = (self.name is not None, self.version is not None)
        if named != ((False, False) if self.artifact_id else (True, True)):
            raise ValueError("send `artifact_id`, or `name` and `version`")
        return self


class BlobView(View):
    sha256: str
    size: int
    used_bytes: int = Field(description="what the tenant or the platform stores now")
    quota_bytes: int | None = Field(description="null: no limit (the platform's own)")


class DeliveryView(View):
    id: str
    artifact_id: str
    project_id: str | None
    node_id: str
    task_id: str | None
    sha256: str
    size: int
    state: str
    expires_at: Moment
    received_at: Moment | None
