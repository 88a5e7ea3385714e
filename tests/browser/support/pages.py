"""A browser that notices everything: errors in its console, what the policy refused, and what axe finds on each page."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.support.browser_stack import Scene

CHROMIUM = "/usr/bin/chromium-headless-shell"
AXE = Path(__file__).parents[3] / "console/node_modules/axe-core/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SERIOUS = ("serious", "critical")
WAIT_MS = 120_000  # the machine may be busy
MACHINE = ("ERR_NETWORK_CHANGED",)  # a lab came up or went beside us; the console asks again

expect.set_options(timeout=WAIT_MS)


@dataclass
class Visit:
    page: Page
    scene: Scene
    errors: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)  # parts of errors that the test itself causes

    def sign_in(self, name: str, to: str = "") -> None:
        email, password = self.scene.person(name)
        self.page.goto(self.scene.url + to)
        self.page.get_by_label("E-mail").fill(email)
        self.page.get_by_role("textbox", name="Password").fill(password)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        expect(self.page.get_by_role("navigation", name="Pages")).to_be_visible()

    def go(self, rest: str, heading: str) -> None:
        self.page.goto(self.scene.page(rest))
        self.at(heading)

    def at(self, heading: str) -> None:
        expect(self.page.get_by_role("heading", level=1, name=heading, exact=True)).to_be_visible()
        expect(self.page.locator("[aria-busy=true]")).to_have_count(0)

    def check(self) -> None:
        """Nothing serious for people who use a keyboard, a reader or little contrast."""
        self.page.mouse.move(0, 0)
        found = self._axe()
        bad = [
            f"{one['id']}: {one['help']} at {one['nodes'][0]['html'][:160]}"
            for one in found
            if one["impact"] in SERIOUS
        ]
        assert not bad, f"{self.page.url}\n" + "\n".join(bad)

    def _axe(self) -> list[dict[str, Any]]:
        if not self.page.evaluate("Boolean(window.axe)"):
            self.page.evaluate(AXE.read_text())  # past the page's policy, as a person's own tools are
        options = {"runOnly": TAGS, "resultTypes": ["violations"]}
        return self.page.evaluate("options => axe.run(document, options).then(found => found.violations)", options)

    def quiet(self) -> None:
        unexpected = [one for one in self.errors if not any(part in one for part in (*MACHINE, *self.allowed))]
        assert not unexpected, "\n".join(unexpected)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextlib.contextmanager
def visiting(browser: Browser, scene: Scene, **how: Any) -> Iterator[Visit]:
    with contextlib.closing(browser.new_context(reduced_motion="reduce", **how)) as context:
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        visit = Visit(page, scene)
        page.on(
            "console", lambda said: visit.errors.append(f"{page.url}: {said.text}") if said.type == "error" else None
        )
        page.on("pageerror", lambda error: visit.errors.append(f"{page.url}: {error}"))
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', e =>"
            " console.error('CSP', e.violatedDirective, e.blockedURI, e.sourceFile, e.lineNumber))"
        )
        yield visit
