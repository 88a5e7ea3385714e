"""Decides whether a project may use an artifact. The check runs when a caller resolves the artifact, when a delivery is
created, and again when a node fetches it, so that changes in between take effect.

A tenant cannot bypass a restriction on a platform source with a source of its own at the same address: every platform
source at the same host with an overlapping path must be allowed by the policies as well, and not be disabled.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from sqlalchemy import Connection, bindparam, select

from ..authz.evaluate import Scope
from ..kit.problems import NotFound, Problem
from ..kit.rows import Query
from ..policy.evaluate import Overlay
from ..policy.reads import require
from .errors import ArtifactWithdrawn, SourceDisabled
from .owners import PLATFORM, owners_seen, seen_by
from .rows import ArtifactRow, SourceRow
from .sources import SOURCES
from .states import DISABLED, ENABLED, REGISTERED
from .tables import artifact_sources, artifacts

_a, _s = artifacts.c, artifact_sources.c
_ARTIFACTS = Query(
    select(
        artifacts, _s.policy_name.label("source"), _s.state.label("source_state"), _s.owner.label("source_owner")
    ).join(artifact_sources, _s.id == _a.source_id),
    ArtifactRow,
)
_SEEN = _ARTIFACTS.where(_a.owner.in_(bindparam("owners", expanding=True)))
_BY_ID = _SEEN.where(_a.id == bindparam("artifact"))
_BY_NAME = _SEEN.where(_a.name == bindparam("name"), _a.version == bindparam("version"))
_SOURCE = SOURCES.where(_s.id == bindparam("source"))
_OF_PLATFORM_AT_HOST = SOURCES.where(_s.owner == PLATFORM, _s.host == bindparam("host"))


def artifacts_seen(scope: Scope) -> Query[ArtifactRow]:
    """Return the query for the artifacts of the scope's tenant and of the platform, each with its source."""
    return _ARTIFACTS.where(seen_by(_a.owner, scope))


def artifact_row(tx: Connection, scope: Scope, artifact_id: str) -> ArtifactRow:
    row = _BY_ID.first(tx, artifact=artifact_id, owners=owners_seen(scope))
    if row is None:
        raise NotFound("Artifact not found.")
    return row


def artifact_called(tx: Connection, scope: Scope, name: str, version: str) -> ArtifactRow:
    """Return the artifact with this name and version, or raise NotFound.
    The tenant's own artifact takes precedence over the platform's."""
    found = _BY_NAME.all(tx, name=name, version=version, owners=owners_seen(scope))
    rows = sorted(found, key=lambda row: row.owner == PLATFORM)
    if not rows:
        raise NotFound(f"Artifact {name!r} version {version!r} not found.")
    return rows[0]


def require_artifact(tx: Connection, overlays: Sequence[Overlay], row: ArtifactRow) -> SourceRow:
    """Return the artifact's source, or raise an error if the project may not use the artifact."""
    if row.state != REGISTERED:
        raise ArtifactWithdrawn(f"{row.name} {row.version} was withdrawn: {row.withdraw_reason or 'no reason given'}.")
    source = _SOURCE.one(tx, source=row.source_id)
    require_source(tx, overlays, source)
    return source


def require_source(tx: Connection, overlays: Sequence[Overlay], source: SourceRow) -> None:
    covering = _covering(tx, source)
    for checked in (source, *covering):
        if checked.state == DISABLED or (checked.id == source.id and checked.state != ENABLED):
            raise SourceDisabled(f"The source {checked.policy_name!r} is {checked.state}.")
    for name in dict.fromkeys((source.policy_name, *(other.policy_name for other in covering))):
        require(overlays, "artifact_sources", name)


def judged(tx: Connection, overlays: Sequence[Overlay], row: ArtifactRow) -> tuple[bool, str]:
    """Return (True, reason) if the project may use the artifact, otherwise (False, reason)."""
    try:
        require_artifact(tx, overlays, row)
    except Problem as refusal:
        return False, refusal.detail
    return True, f"no policy refuses the artifact source {row.source!r}"


def _covering(tx: Connection, source: SourceRow) -> list[SourceRow]:
    """Return the platform's sources, removed ones included, at the same host and with an overlapping path. The list is
    empty if the source itself belongs to the platform."""
    if source.owner == PLATFORM:
        return []
    same_host = _OF_PLATFORM_AT_HOST.all(tx, host=source.host)
    return [other for other in same_host if _overlap(other.base_url, source.base_url)]


def _overlap(first_url: str, second_url: str) -> bool:
    first, second = (f"{urlsplit(url).path.rstrip('/')}/" for url in (first_url, second_url))
    return first.startswith(second) or second.startswith(first)
