"""Contact times of nodes: when each node last polled, and when its next poll is due.

They have a separate table with three narrow columns, because each node writes it every few seconds; the wide row of a
node is written only when something about the node changes. A poll is noted in memory (`Platform.contacts`) and written
about a second later, together with those of other nodes.
"""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, insert, update

from .tables import node_contacts

_SEEN = (
    update(node_contacts)
    .where(node_contacts.c.node_id == bindparam("node"))
    .values(last_seen_at=bindparam("seen"), due_at=bindparam("due"))
)


def add(tx: Connection, node_id: str, now: int) -> None:
    """Add the contact times of a newly enrolled node, whose first poll is due at once."""
    tx.execute(insert(node_contacts).values(node_id=node_id, last_seen_at=now, due_at=now))


def renew(tx: Connection, node_id: str, now: int) -> None:
    tx.execute(_SEEN, {"node": node_id, "seen": now, "due": now})


def write(tx: Connection, seen: Mapping[str, tuple[int, int]]) -> None:
    """Write the last contact and the due time of these nodes.
    `seen` is sorted by node id, to avoid deadlocks with other processes."""
    if seen:
        tx.execute(_SEEN, [{"node": node, "seen": at, "due": due} for node, (at, due) in seen.items()])
