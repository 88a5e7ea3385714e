"""An allocation has one holder: the first to take it, counted the same on the first use of the statement and later."""

import pytest
from gpuaas_core.capacity import holds
from gpuaas_core.capacity.holds import Holder
from gpuaas_core.http.call import Platform
from sqlalchemy import Connection

from core.tests.support.fixtures import World


@pytest.mark.parametrize("times_before", [0, 1, 2])
def test_allocations_are_held_by_the_first_holder_alone(world: World, platform: Platform, times_before: int) -> None:
    holds._add.cache_clear()  # as in a process that has just started: SQLAlchemy sends the statement the first time
    free = world.allocations[:2]

    def take_all(tx: Connection) -> None:
        for number in range(times_before):
            assert holds.hold(tx, free[:1], Holder("instance", f"early-{number}")) is (number == 0)
            if number == 0:
                holds.release(tx, Holder("instance", "early-0"))
                assert holds.hold(tx, free[:1], Holder("instance", "early-0"))
        holds.release(tx, Holder("instance", "early-0"))
        assert holds.hold(tx, free, Holder("instance", "first"))
        assert not holds.hold(tx, free, Holder("instance", "second"))
        assert {one.id for one in holds.holders_of(tx, free).values()} == {"first"}

    platform.db.write_now(take_all)
