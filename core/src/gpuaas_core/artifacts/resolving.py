"""Whether a project may use an artifact now. Asked when somebody resolves it, when a delivery is made, and again when a
machine fetches it: whatever changed meanwhile counts.

A tenant that names a host of the platform's sources anew does not escape what is decided about those: the policies of
every platform source that covers the same place must allow it as well, and none of them may be disabled.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, Row, select

from ..access.evaluate import Scope
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
    """What is registered by the tenant and by the platform, each with its source."""
    query: Any = select(artifacts, *_SHOWN)
    query = query.join(artifact_sources, artifact_sources.c.id == artifacts.c.source_id)
    return query.where(seen_by(artifacts.c.owner, scope))


def artifact_row(tx: Connection, scope: Scope, artifact_id: str) -> Row[Any]:
    row = tx.execute(artifacts_seen(scope).where(artifacts.c.id == artifact_id)).first()
    if row is None:
        raise NotFound("There is no such artifact here.")
    return row


def artifact_called(tx: Connection, scope: Scope, name: str, version: str) -> Row[Any]:
    """The tenant's own before the platform's."""
    these = artifacts_seen(scope).where(artifacts.c.name == name, artifacts.c.version == version)
    rows = sorted(tx.execute(these).all(), key=lambda row: row.owner == PLATFORM)
    if not rows:
        raise NotFound(f"There is no artifact {name!r} {version!r} here.")
    return rows[0]


def require_artifact(tx: Connection, overlays: Sequence[Overlay], row: Row[Any]) -> Row[Any]:
    """The source it comes from; or the refusal."""
    if row.state != REGISTERED:
        raise ArtifactWithdrawn(
            f"{row.name} {row.version} was withdrawn: {row.withdraw_reason or 'no reason was given'}."
        )
    source = tx.execute(select(artifact_sources).where(artifact_sources.c.id == row.source_id)).one()
    require_source(tx, overlays, source)
    return source


def require_source(tx: Connection, overlays: Sequence[Overlay], source: Row[Any]) -> None:
    covering = _covering(tx, source)
    for one in (source, *covering):
        if one.state == DISABLED or (one.id == source.id and one.state != ENABLED):
            raise SourceDisabled(f"The source {one.policy_name!r} is {one.state}.")
    for name in dict.fromkeys((source.policy_name, *(one.policy_name for one in covering))):
        require(overlays, "artifact_sources", name)


def judged(tx: Connection, overlays: Sequence[Overlay], row: Row[Any]) -> tuple[bool, str]:
    """The same question, for those who only look."""
    try:
        require_artifact(tx, overlays, row)
    except Problem as refusal:
        return False, refusal.detail
    return True, f"no policy refuses the artifact source {row.source!r}"


def _covering(tx: Connection, source: Row[Any]) -> list[Row[Any]]:
    """The platform's sources, gone ones too, at the same host and one inside the other."""
    if source.owner == PLATFORM:
        return []
    s = artifact_sources.c
    same_host = tx.execute(select(artifact_sources).where(s.owner == PLATFORM, s.host == source.host)).all()
    return [one for one in same_host if _overlap(one.base_url, source.base_url)]


def _overlap(one: str, other: str) -> bool:
    first, second = (f"{urlsplit(url).path.rstrip('/')}/" for url in (one, other))
    return first.startswith(second) or second.startswith(first)
