"""What the console weighs and how it feels, in a real browser against a real core, with a crowded instance.

The instance has 200 members and 5,000 operations behind it. Sizes, jumps and rows belong to the console and have a
target that a test keeps (tests/browser/test_crowd.py); milliseconds belong to the machine and are only shown.

    python bench/console.py [--gate]
"""

import socket
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.support.browser_stack import Scene, scene
from tests.browser.support.bulk_data import NAME, crowd
from tests.browser.support.page_metrics import MOST_ANSWER_KB, MOST_ROWS, MOST_SCRIPT_KB, MOST_SHIFT, Watch
from tests.browser.support.pages import Visit, chromium, expect, visiting

WIDE = {"width": 1440, "height": 900}


@dataclass(frozen=True)
class Figure:
    what: str
    value: float
    unit: str
    most: float | None = None  # None: the machine's, not ours

    @property
    def kept(self) -> bool:
        return self.most is None or self.value < self.most


def main() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as root, scene(Path(root), port) as made, chromium() as browser:
        address = made.url + crowd(made)
        with visiting(browser, made, viewport=WIDE) as visit:
            figures = list(_look(visit, made, address))
    width = max(len(one.what) for one in figures)
    for one in figures:
        target = "" if one.most is None else f"under {one.most:g}{'' if one.kept else '   MISSED'}"
        print(f"{one.what:{width}}  {one.value:9.2f} {one.unit:6} {target}")
    return 0 if all(one.kept for one in figures) or "--gate" not in sys.argv else 1


def _look(visit: Visit, made: Scene, address: str) -> Iterator[Figure]:
    watch = Watch(visit.page)
    visit.sign_in("dana")
    visit.at("Instances")
    yield from _page(watch, "first load")
    watch.read()
    yield Figure("first load: script, gzip", watch.script_kb, "kB", MOST_SCRIPT_KB)
    project = address.partition("/instances/")[0]
    tenant = f"{made.url}/tenants/{made.demo.tenant_id}"
    pages = {"instance": address, "history": f"{address}?tab=history", "operations": f"{project}/operations"}
    pages |= {"allocations": f"{project}/allocations", "events": f"{project}/events", "machines": f"{tenant}/nodes"}
    for name, where in pages.items():
        visit.page.goto(where)
        expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
        expect(visit.page.locator("[aria-busy=true]")).to_have_count(0)
        if name == "instance":
            visit.at(NAME)
        yield from _page(watch, name)
        watch.read()
    size, where = watch.largest
    yield Figure(f"largest answer ({where.removeprefix(made.url).partition('?')[0][-40:]})", size, "kB", MOST_ANSWER_KB)


def _page(watch: Watch, name: str) -> Iterator[Figure]:
    settled = watch.page.evaluate("performance.now()")
    seen = watch.seen()
    yield Figure(f"{name}: first paint", seen["paint"].get("first-contentful-paint", 0), "ms")
    yield Figure(f"{name}: everything is there", settled, "ms")
    yield Figure(f"{name}: layout shift", seen["shift"], "", MOST_SHIFT)
    yield Figure(f"{name}: rows on the screen", watch.rows(), "", MOST_ROWS)
    gaps = watch.scroll()
    if len(gaps) > 10:
        yield Figure(f"{name}: scrolling, middle frame", statistics.median(gaps), "ms")
        yield Figure(f"{name}: scrolling, frames over 50 ms", sum(gap > 50 for gap in gaps), f"of {len(gaps)}")
    yield Figure(f"{name}: long tasks", sum(watch.seen()["long"]), "ms")


if __name__ == "__main__":
    sys.exit(main())
