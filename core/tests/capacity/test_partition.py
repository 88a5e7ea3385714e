"""A machine that is cut off for ten seconds, a minute, a quarter of an hour: what is said of it, and who may have it."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from joserfc.jwk import OKPKey

from core.tests.capacity.test_capacity import beat, decide, healthy, look, node, want
from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import Api, MovableClock, World, add_node, applied, apply_trust, machine_token, poll
from core.tests.support.store_rows import rows

EVERY_S, LATER_S = 5, 15  # we look as often as housekeeping does, later less


@dataclass
class Cut:
    """One machine behind a cable that can be pulled. Time is moved to the second of each look; what the looks
    themselves take is part of it."""

    world: World
    clock: MovableClock
    id: str
    machine: Api
    key: OKPKey
    said: dict[str, int] = field(default_factory=dict)  # state, and the second it was first seen

    async def silent(self, seconds: int) -> None:
        second, began = 0, self.clock()
        while second < seconds:
            step = EVERY_S if second < 60 else LATER_S
            second += step
            self.clock.forward(max(0.0, second - (self.clock() - began) / 1000))
            look(self.world)
            self.said.setdefault((await self.see())["state"], second)

    async def see(self) -> Any:
        return await node(self.world, self.id)

    async def state(self) -> str:
        return (await self.see())["state"]

    async def speaks(self) -> None:
        self.machine = await machine_token(self.world.api, self.key, self.id, self.world.now())
        assert (await beat(self.id, self.machine)).status_code == 200


@pytest.fixture
async def cut(world: World, clock: MovableClock) -> Cut:
    made, machine, key = await add_node(world, "far")
    return Cut(world, clock, made, machine, key)


async def held(cut: Cut, project: str, **terms: Any) -> Any:
    path = f"/v1/projects/{project}/allocations"
    made = await cut.world.boss.ok(path, {"node_id": cut.id} | terms)
    await apply_trust(cut.id, cut.machine)
    return (await cut.world.boss.get(f"{path}/{made['id']}")).json()


def allocation(cut: Cut, one: Any) -> str:
    return f"/v1/projects/{one['project_id']}/allocations/{one['id']}"


async def test_ten_seconds_are_nothing(cut: Cut) -> None:
    mine = await held(cut, cut.world.red)
    await cut.silent(10)
    await cut.speaks()
    assert cut.said == {"ready": 5}
    told = rows(cut.world.platform, "select type from events where subject = :id", id=cut.id)
    assert not [one for one in told if one["type"].endswith(("unknown", "lost"))]
    assert (await cut.world.boss.get(allocation(cut, mine))).json()["state"] == "active"


async def test_a_minute_is_unknown_and_it_is_ready_as_soon_as_it_speaks(cut: Cut) -> None:
    mine = await held(cut, cut.world.red)
    await cut.silent(60)
    assert cut.said["unknown"] in (15, 20), "after 15 s, at the next round"
    assert set(cut.said) == {"ready", "unknown"}
    check_problem(await want(cut.world, cut.world.blue), 409, "capacity_short")
    seen = (await cut.world.boss.get(allocation(cut, mine))).json()
    assert (seen["state"], seen["node_state"]) == ("active", "unknown"), "it is still the owner's"
    await cut.speaks()
    assert await cut.state() == "ready"
    assert (await cut.world.boss.get(allocation(cut, mine))).json()["state"] == "active"


@pytest.mark.parametrize("patience", [None, 120, 3600])
async def test_a_quarter_of_an_hour_is_lost_after_what_the_allocation_says(cut: Cut, patience: int | None) -> None:
    terms = {"lost_after_s": patience} if patience else {}
    mine = await held(cut, cut.world.red, **terms)
    await cut.silent(900)
    assert cut.said["unknown"] in (15, 20)
    assert cut.said.get("lost") in {None: (600, 615), 120: (120, 135), 3600: (None,)}[patience]
    check_problem(await want(cut.world, cut.world.blue), 409, "capacity_short")
    assert (await cut.world.boss.get(allocation(cut, mine))).json()["state"] == "active"
    await cut.speaks()
    assert await cut.state() == "ready", "what it trusted when it was cut off is what it should trust"


async def test_what_was_given_back_while_it_was_away_is_not_free_until_it_has_let_go(cut: Cut) -> None:
    """The lease ends, ten minutes pass: the machine still lets the old owner in, so no other project gets it."""
    mine = await held(cut, cut.world.red, expires_in_s=300)
    await cut.silent(900)
    assert await cut.state() == "lost"
    assert (await cut.world.boss.get(allocation(cut, mine))).json()["state"] == "releasing"
    await cut.speaks()
    assert await cut.state() == "lost", "it speaks, and still trusts whom it must not"
    blue = f"/v1/projects/{cut.world.blue}/allocations"
    check_problem(await cut.world.boss.post(blue, {"node_id": cut.id}), 409, "node_not_ready")
    check_problem(await want(cut.world, cut.world.blue), 409, "capacity_short")
    trust = await apply_trust(cut.id, cut.machine)
    assert trust["principals"] == {"root": []}
    assert await cut.state() == "ready"
    assert (await cut.world.boss.get(allocation(cut, mine))).json()["state"] == "released"
    assert (await held(cut, cut.world.blue))["state"] == "active"
    assert healthy(cut.world)


async def test_a_report_from_before_the_cut_changes_nothing_when_it_arrives_late(cut: Cut) -> None:
    mine = await held(cut, cut.world.red)
    generation = (await cut.see())["trust_generation"]
    await cut.silent(60)
    await cut.world.boss.ok(f"{allocation(cut, mine)}/release")
    await applied(cut.id, cut.machine, generation)
    assert (await cut.world.boss.get(allocation(cut, mine))).json()["state"] == "releasing"
    assert await cut.state() == "unknown"


async def test_a_platform_whose_clock_was_set_back_believes_no_machine_gone(cut: Cut) -> None:
    await held(cut, cut.world.red)
    cut.clock.forward(-3600)
    look(cut.world)
    await cut.speaks()
    assert await cut.state() == "ready"
    cut.clock.forward(3600)
    await cut.speaks()
    look(cut.world)
    assert await cut.state() == "ready"


async def test_the_doctor_finds_nothing_wrong_with_a_cordoned_machine_that_was_lost_and_came_back(cut: Cut) -> None:
    await decide(cut.world, cut.id, "cordon")
    await cut.silent(660)
    assert await cut.state() == "lost"
    await cut.speaks()
    assert await cut.state() == "cordoned"
    assert healthy(cut.world)


@pytest.mark.parametrize("ahead", [2, 5, 10**30])
async def test_a_machine_that_knows_more_than_the_store_gets_its_whole_trust_again(cut: Cut, ahead: int) -> None:
    """As after the restore of an older backup: neither its number nor its word counts until it has applied ours."""
    mine = await held(cut, cut.world.red)
    known = (await cut.see())["trust_generation"] + ahead
    await cut.world.boss.ok(f"{allocation(cut, mine)}/release")
    told = (await poll(cut.id, cut.machine, known, known)).json()["trust"]
    assert (await cut.world.boss.get(allocation(cut, mine))).json()["state"] == "releasing", "it never said so"
    assert told["principals"] == {"root": []}
    assert told["generation"] > known or ahead == 10**30
    await applied(cut.id, cut.machine, told["generation"])
    seen = await cut.see()
    assert (seen["state"], seen["trust_applied"]) == ("ready", seen["trust_generation"])
    assert (await cut.world.boss.get(allocation(cut, mine))).json()["state"] == "released"


async def test_a_machine_that_has_applied_what_the_store_never_heard_of_is_asked_again(cut: Cut) -> None:
    """A restore can also lose the report alone: then the number is the same, and waiting for a newer one is for ever."""
    mine = await held(cut, cut.world.red)
    await cut.world.boss.ok(f"{allocation(cut, mine)}/release")
    generation = (await cut.see())["trust_generation"]
    told = await poll(cut.id, cut.machine, generation, generation)
    assert told.json()["trust"]["generation"] == generation + 1
    await applied(cut.id, cut.machine, generation + 1)
    assert (await cut.world.boss.get(allocation(cut, mine))).json()["state"] == "released"
    quiet = await poll(cut.id, cut.machine, generation + 1, generation + 1, machine_id="far")
    assert quiet.status_code == 204
