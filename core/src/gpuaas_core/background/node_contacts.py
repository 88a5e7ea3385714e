"""Every second, writes the contact times of all nodes that polled since the last round, in one transaction."""

from contextlib import AbstractAsyncContextManager

from ..capacity import contacts
from ..http.call import Platform
from ..kit.loop import every

EVERY_S = 1.0


def noting_contacts(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(EVERY_S, lambda: _round(platform), name="node contacts")


async def _round(platform: Platform) -> None:
    if seen := platform.contacts.take():
        try:
            await platform.db.write(lambda tx: contacts.write(tx, seen))
        except BaseException:
            platform.contacts.put_back(seen)
            raise


def write_contacts(platform: Platform) -> None:
    """Write the noted contact times now. Called before housekeeping looks for silent nodes,
    so that it overlooks no poll."""
    if seen := platform.contacts.take():
        platform.db.write_now(lambda tx: contacts.write(tx, seen))
