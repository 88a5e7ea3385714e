"""What a visit weighs and how it feels: sizes of answers and scripts, jumps of the layout, long tasks, frames.

The browser's own observers say it; `bench/console.py` prints it, and a test looks at what does not depend on the machine.
"""

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

MOST_SCRIPT_KB, MOST_ANSWER_KB, MOST_SHIFT, MOST_ROWS = 250, 200, 0.1, 120
OBSERVERS = """
performance.setResourceTimingBufferSize(2000);
window.seen = {shift: 0, shifts: [], long: [], paint: {}};
const observe = (type, each) =>
  new PerformanceObserver(list => list.getEntries().forEach(each)).observe({type, buffered: true});
const nodes = entry => entry.sources.map(one => one.node?.outerHTML?.slice(0, 120) ?? String(one.node?.nodeName));
observe('layout-shift', entry => {
  if (entry.hadRecentInput) return;
  window.seen.shift += entry.value;
  window.seen.shifts.push([entry.value, nodes(entry)]);
});
observe('longtask', entry => window.seen.long.push(entry.duration));
observe('paint', entry => window.seen.paint[entry.name] = entry.startTime);
"""
SIZES = """
() => performance.getEntriesByType('resource').map(one => [one.name, one.encodedBodySize, one.decodedBodySize])
"""
SCROLL = """
() => new Promise(done => {
  const gaps = [];
  let last = performance.now();
  const bottom = document.documentElement.scrollHeight - innerHeight;
  const step = now => {
    gaps.push(now - last);
    last = now;
    scrollBy(0, 60);
    if (scrollY >= bottom - 1 || gaps.length > 240) return done(gaps.slice(1));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
"""


@dataclass
class Watch:
    """Begun before the first page; a reloaded page starts its own counts."""

    page: Page
    answers: dict[str, int] = field(default_factory=dict)  # bytes by address; a stream counts when it ends
    scripts: dict[str, int] = field(default_factory=dict)  # bytes by address, as they travel: gzip

    def __post_init__(self) -> None:
        self.page.add_init_script(OBSERVERS)

    def read(self) -> None:
        """Answers so far: when the page has come to rest, and before it is left."""
        for url, packed, plain in self.page.evaluate(SIZES):
            if "/v1/" in url:
                self.answers[url] = max(plain, self.answers.get(url, 0))
            elif url.endswith(".js"):
                self.scripts[url] = packed

    @property
    def script_kb(self) -> float:
        return sum(self.scripts.values()) / 1024

    @property
    def largest(self) -> tuple[float, str]:
        size, url = max((size, url) for url, size in self.answers.items())
        return size / 1024, url

    def seen(self) -> dict[str, Any]:
        return self.page.evaluate("window.seen")

    def rows(self) -> int:
        return self.page.locator("tr, [role=checkbox], [role=radio]").count()

    def scroll(self) -> list[float]:
        """Milliseconds between the frames of a way from the top to the bottom."""
        self.page.evaluate("scrollTo(0, 0)")
        return self.page.evaluate(SCROLL)
