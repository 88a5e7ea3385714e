"""Whether a project may use an artifact now. Checked when a caller resolves it, when a delivery is created, and again
when a node fetches it, so later changes count.

A tenant source at the same host does not bypass decisions about the platform's sources: the policies of
every platform source that covers the same path must allow it as well, and none of them may be disabled.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, Row, select

from ..authz.evaluate import Scope
from ..kit.problems import NotFound, Problem
from ..policy.evaluate import Overlay
from ..policy.reads import require
from .errors import ArtifactWithdrawn, SourceDisabled
from .owners import PLATFORM, seen_by
from .states import DISABLED, ENABLED, REGISTERED
from .tables import artifact_sources, artifacts

_SHOWN = [
    artifact_sources.c.policy_name.label("source"),
    artifact_sources.c.state.label("source_state"),
    artifact_sources.c.owner.label("source_owner"),
]


def artifacts_seen(scope: Scope) -> Any:
    """Artifacts of the tenant and of the platform, each with its source."""
    query: Any = select(artifacts, *_SHOWN)
    query = query.join(artifact_sources, artifact_sources.c.id == artifacts.c.source_id)
    return query.where(seen_by(artifacts.c.owner, scope))


def artifact_row(tx: Connection, scope: Scope, artifact_id: str) -> Row[Any]:
    row = tx.execute(artifacts_seen(scope).where(artifacts.c.id == artifact_id)).first()
    if row is None:
        raise NotFound("Artifact not found.")
    return row


def artifact_called(tx: Connection, scope: Scope, name: str, version: str) -> Row[Any]:
    """The tenant's own artifact takes precedence over the platform's."""
    these = artifacts_seen(scope).where(artifacts.c.name == name, artifacts.c.version == version)
    rows = sorted(tx.execute(these).all(), key=lambda row: row.owner == PLATFORM)
    if not rows:
        raise NotFound(f"Artifact {name!r} version {version!r} not found.")
    return rows[0]


def require_artifact(tx: Connection, overlays: Sequence[Overlay], row: Row[Any]) -> Row[Any]:
    """The artifact's source; raises if its use is not allowed."""
    if row.state != REGISTERED:
        raise ArtifactWithdrawn(f"{row.name} {row.version} was withdrawn: {row.withdraw_reason or 'no reason given'}.")
    source = tx.execute(select(artifact_sources).where(artifact_sources.c.id == row.source_id)).one()
    require_source(tx, overlays, source)
    return source


def require_source(tx: Connection, overlays: Sequence[Overlay], source: Row[Any]) -> None:
    covering = _covering(tx, source)
    for checked in (source, *covering):
        if checked.state == DISABLED or (checked.id == source.id and checked.state != ENABLED):
            raise SourceDisabled(f"The source {checked.policy_name!r} is {checked.state}.")
    for name in dict.fromkeys((source.policy_name, *(other.policy_name for other in covering))):
        require(overlays, "artifact_sources", name)


def judged(tx: Connection, overlays: Sequence[Overlay], row: Row[Any]) -> tuple[bool, str]:
    """The same check, as a result instead of an error."""
    try:
        require_artifact(tx, overlays, row)
    except Problem as refusal:
        return False, refusal.detail
    return True, f"no policy refuses the artifact source {row.source!r}"


def _covering(tx: Connection, source: Row[Any]) -> list[Row[Any]]:
    """The platform's sources, removed ones too, at the same host whose path contains or is contained in this one."""
    if source.owner == PLATFORM:
        return []
    s = artifact_sources.c
    same_host = tx.execute(select(artifact_sources).where(s.owner == PLATFORM, s.host == source.host)).all()
    return [other for other in same_host if _overlap(other.base_url, source.base_url)]


def _overlap(first_url: str, second_url: str) -> bool:
    first, second = (f"{urlsplit(url).path.rstrip('/')}/" for url in (first_url, second_url))
    return first.startswith(second) or second.startswith(first)
