"""How long from "I want a cluster" to the first `srun`, and the same for what comes after: product against bare script.

Both on the same hosts, in one run and in turn, each leaves the hosts as it found them, and the ratio of a case is the
median over all pairs. Seconds belong to the machine; the ratio is what a gate may look at. `seen` counts
from the moment the controller took the operation, `asked` from the API request; the ratio is of `seen`.

    python bench/bringup.py [--rounds 3] [--only deploy --only add] [--wide 32] [--gate] [-o json]

Needs root (it boots its own lab hosts, core and controller, and takes them down again).
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import App, Parameter
from floor import Place
from product import Stage, Took, stage

T = TypeVar("T")
F = TypeVar("F")
app = App(help=__doc__)
Say = Callable[[str], None]
Cpu = tuple[float, float]  # processor seconds: of the floor, of the product
INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
PAIRS = 3  # of the short cases, in each round
PER_HOST = 3  # inotify instances of a booted lab host


@dataclass(frozen=True)
class Case:
    title: str
    most: float  # the ratio it may have
    where: str  # which hosts it needs


CASES = {
    "one": Case("deploy on one host", 3.0, "narrow"),
    "deploy": Case("deploy 1+3, packages there", 3.0, "narrow"),
    "accounting": Case("accounting ready, with account and user", 1.8, "narrow"),
    "add": Case("add a worker", 3.0, "narrow"),
    "remove": Case("drain and remove an idle worker", 3.0, "narrow"),
    "converge": Case("a converge with nothing to do", 2.0, "narrow"),
    "adds": Case("eight adds at once, to one add of ours", 2.5, "narrow"),
    "bundle": Case("deploy 1+3, packages from the platform", 1.5, "bare"),
    "wide": Case("deploy 1+N", 2.0, "wide"),
}


@dataclass(frozen=True)
class Row:
    """Seconds; `changed` names steps that acted where nothing was to do."""

    case: str
    floor: float
    took: Took
    cpu: Cpu | None = None
    changed: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        return self.took.seen / self.floor


@app.default
def main(
    *,
    rounds: int = 3,
    only: list[str] | None = None,
    wide: int = 32,
    port: int = 18199,
    lab: str = "bench",
    gate: bool = False,
    profile: bool = False,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])] = "table",
) -> None:
    """Run the comparison.

    Parameters
    ----------
    only
        Cases to run; all of them by default (of a group, all are run and these are shown).
    wide
        How many workers the wide cluster has.
    lab
        The name of the lab it boots.
    gate
        Exit 1 if a median ratio is above what its case may have.
    profile
        Also print when each step of the product's operations began and ended.
    """
    wanted = only or list(CASES)
    if unknown := set(wanted) - CASES.keys():
        sys.exit(f"No case {unknown.pop()!r}; there are {', '.join(CASES)}.")
    say = (lambda line: print(line, file=sys.stderr, flush=True)) if output == "json" else print
    rows = [row for row in _all(wanted, rounds, wide, port, lab, say, profile) if row.case in wanted]
    report(rows, output)
    late = [name for name in wanted if median(rows, name) > CASES[name].most]
    if gate and late:
        sys.exit(f"Above their ratio: {', '.join(late)}.")


def _all(wanted: list[str], rounds: int, wide: int, port: int, lab: str, say: Say, profile: bool) -> Iterator[Row]:
    groups = {CASES[name].where for name in wanted}
    sizes = {"narrow": 12, "bare": 4, "wide": wide + 1}
    rounds_of = {"narrow": narrow, "bare": bundle, "wide": widely}
    for group in (one for one in sizes if one in groups):
        _check_room(sizes[group])
        with stage(lab, sizes[group], port, say, bare=group == "bare") as at:
            for number in range(1, rounds + 1):
                for row in rounds_of[group](at, floor_first=bool(number % 2)):
                    say(line(row, f"round {number}"))
                    yield row
                if group == "narrow" and "adds" in wanted:
                    say(f"round {number}   {floor_adds(at)}")
            for words in at.profile() if profile else ():
                say(words)


def _check_room(hosts: int) -> None:
    """A host that finds no inotify instance boots half and hangs."""
    most = int(INSTANCES.read_text())
    if hosts * PER_HOST > most:
        words = f"sysctl -w fs.inotify.max_user_instances={hosts * PER_HOST * 2}"
        sys.exit(f"{hosts} hosts need about {hosts * PER_HOST} inotify instances, and this machine has {most}: {words}")


def narrow(at: Stage, *, floor_first: bool) -> list[Row]:
    """Two clusters stand side by side, one by each, so that what takes less than a second is done by both within a few
    seconds, in turn and more than once: a busy machine is as busy for one as for the other."""
    head, workers, twin, others, spare, fresh = _places(at)
    floor, first = at.floor, floor_first
    rows: list[Row] = []

    async def alone() -> float:
        one = await floor.deploy(head, [head])
        await floor.clean([head])
        return one["job"]

    def ours_alone() -> Took:
        instance, took = at.deploy(head, [head])
        at.decommission(instance)
        return took["job"]

    (one, other), turn = spare, Turn(at, at.idle())
    rows.append(turn.row("one", first, ours_alone, lambda: asyncio.run(alone())))
    deployed = turn.both(first, lambda: at.deploy(head, workers), lambda: asyncio.run(floor.deploy(twin, others)))
    moments, (instance, several), _ = deployed
    rows += [
        Row(case, moments[name], several[name]) for case, name in (("deploy", "job"), ("accounting", "accounting"))
    ]
    for pair in range(PAIRS):
        first = bool(pair % 2)
        look, (took, changed), cpu = turn.both(
            first, lambda: at.converge(instance), lambda: asyncio.run(floor.look(twin, others))
        )
        rows.append(Row("converge", look, took, cpu, tuple(changed)))
        rows.append(
            turn.row("add", first, lambda: at.add(instance, [one]), lambda: asyncio.run(floor.add(twin, other)))
        )
        rows.append(
            turn.row("remove", first, lambda: at.remove(instance, one), lambda: asyncio.run(floor.remove(twin, other)))
        )
        asyncio.run(floor.clean([other]))
    asyncio.run(floor.clean([twin, *others]))
    ours = statistics.median(row.took.seen for row in rows if row.case == "add")
    rows.append(Row("adds", ours, at.add(instance, fresh)))
    at.decommission(instance)
    return rows


@dataclass(frozen=True)
class Turn:
    """Both sides one after the other, and what each cost in processor time: of all hosts, the core and the controller
    (the product) or of all hosts and this process (the floor), less what they use when nothing is asked of them."""

    at: Stage
    idle: float  # processor seconds per second

    def both(self, floor_first: bool, ours: Callable[[], T], by_hand: Callable[[], F]) -> tuple[F, T, Cpu]:
        done: dict[bool, Any] = {}
        spent: dict[bool, float] = {}
        for floor in (floor_first, not floor_first):
            began, before = time.time(), self.at.spent()
            done[floor] = by_hand() if floor else ours()
            spent[floor] = self.at.spent() - before - self.idle * (time.time() - began)
        return done[True], done[False], (spent[True], spent[False])

    def row(self, case: str, floor_first: bool, ours: Callable[[], Took], by_hand: Callable[[], float]) -> Row:
        floor, took, cpu = self.both(floor_first, ours, by_hand)
        return Row(case, floor, took, cpu)


def _places(at: Stage) -> tuple[Place, list[Place], Place, list[Place], list[Place], list[Place]]:
    """The head and workers of our cluster, those of the floor's, two hosts to add; and eight for adds at once, which
    are all but ours."""
    head, twin = at.places[0], at.places[4]
    return head, at.places[1:4], twin, at.places[5:8], at.places[8:10], at.places[4:12]


def floor_adds(at: Stage) -> str:
    """What eight at once cost the floor: all hosts share the cores of this machine, so it is not one."""
    head, workers, *_, fresh = _places(at)

    async def by_hand() -> tuple[float, float]:
        await at.floor.deploy(head, workers)
        one = await at.floor.add(head, fresh[0])
        await at.floor.remove(head, fresh[0])
        await at.floor.clean(fresh[:1])
        began = time.time()
        await asyncio.gather(*(at.floor.add(head, worker) for worker in fresh))
        eight = time.time() - began
        await at.floor.clean([head, *workers, *fresh])
        return one, eight

    one, eight = asyncio.run(by_hand())
    return f"the floor itself: one add {one:.2f} s, eight at once {eight:.2f} s, ratio {eight / one:.2f}"


def bundle(at: Stage, *, floor_first: bool) -> list[Row]:
    return _deployed(at, "bundle", floor_first, at.packages)


def widely(at: Stage, *, floor_first: bool) -> list[Row]:
    return _deployed(at, "wide", floor_first, None)


def _deployed(at: Stage, case: str, floor_first: bool, packages: bytes | None) -> list[Row]:
    head, *workers = at.places

    async def by_hand() -> float:
        took = (await at.floor.deploy(head, workers, packages))["job"]
        await at.floor.clean(at.places)
        return took

    floor = asyncio.run(by_hand()) if floor_first else 0.0
    instance, took = at.deploy(head, workers)
    at.decommission(instance)
    return [Row(case, floor or asyncio.run(by_hand()), took["job"])]


def median(rows: list[Row], case: str) -> float:
    return statistics.median(row.ratio for row in rows if row.case == case)


def line(row: Row, name: str) -> str:
    changed = f"   changed: {', '.join(row.changed)}" if row.changed else ""
    cpu = f"   cpu {row.cpu[0]:5.2f} s, {row.cpu[1]:5.2f} s" if row.cpu else ""
    return (
        f"{name:9s} {CASES[row.case].title:42s} floor {row.floor:6.2f} s   seen {row.took.seen:6.2f} s"
        f"   asked {row.took.asked:6.2f} s   ratio {row.ratio:5.2f}{cpu}{changed}"
    )


def report(rows: list[Row], output: str) -> None:
    summary = {
        name: {
            "title": CASES[name].title,
            "floor_s": statistics.median(row.floor for row in mine),
            "seen_s": statistics.median(row.took.seen for row in mine),
            "asked_s": statistics.median(row.took.asked for row in mine),
            "ratio": median(rows, name),
            "cpu_ratio": statistics.median(row.cpu[1] / row.cpu[0] for row in mine if row.cpu) if mine[0].cpu else None,
            "ratio_min": min(row.ratio for row in mine),
            "ratio_max": max(row.ratio for row in mine),
            "most": CASES[name].most,
            "changed": sorted({step for row in mine for step in row.changed}),
        }
        for name in CASES
        if (mine := [row for row in rows if row.case == name])
    }
    if output == "json":
        print(json.dumps(summary, indent=2))
        return
    heads = f"{'floor':>7s} {'seen':>7s} {'asked':>7s} {'ratio':>6s} {'(min-max)':>13s} {'may be':>7s} {'cpu':>6s}"
    print(f"\n{'':42s} {heads}")
    for one in summary.values():
        spread = f"({one['ratio_min']:.2f}-{one['ratio_max']:.2f})"
        cpu = f"{one['cpu_ratio']:.2f}" if one["cpu_ratio"] else ""
        verdict = "" if one["ratio"] <= one["most"] else "  ABOVE"
        print(
            f"{one['title']:42s} {one['floor_s']:7.2f} {one['seen_s']:7.2f} {one['asked_s']:7.2f} {one['ratio']:6.2f}"
            f" {spread:>13s} {one['most']:7.1f} {cpu:>6s}{verdict}"
        )


if __name__ == "__main__":
    app()
