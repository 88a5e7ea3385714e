"""The lab's platform as the pages' helper wants to see it, and what is left of a journey taken away again.

Pictures of what a person sees on the way are taken where GPUAAS_SHOTS names a folder: wide and on a phone, light and dark.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuaas_lab.stack.credentials import BOSS, USER
from gpuaas_sdk.client.errors import Conflict
from playwright.sync_api import Browser

from tests.browser.support.pages import Visit, expect, visiting
from tests.support.lab_stack import Ground, wait_until

WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
SLOW_MS = 240_000  # of real hosts, on a busy machine
# Every sentence that the page says from now on; a reloaded page forgets it.
LISTEN = """() => {
  window.heard = [];
  const note = () => {
    const said = document.querySelector("main [aria-live=polite]")?.textContent;
    if (said && window.heard.at(-1) !== said) window.heard.push(said);
  };
  new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
  note();
}"""


@dataclass
class Real:
    ground: Ground

    @property
    def url(self) -> str:
        return self.ground.stack.api

    def page(self, rest: str) -> str:
        return f"{self.url}/projects/{self.ground.research}/{rest}"

    def person(self, name: str) -> tuple[str, str]:
        known = self.ground.stack.credentials
        return {"dana": (BOSS, known.tenant_admin_password), "sam": (USER, known.user_password)}[name]


@contextlib.contextmanager
def looking(browser: Browser, ground: Ground, name: str = "dana") -> Iterator[Visit]:
    """A signed-in person, whose browser has logged no error at the end."""
    with visiting(browser, Real(ground), viewport=WIDE) as visit:  # type: ignore[arg-type]
        visit.allowed = ["ERR_NETWORK_CHANGED"]  # another lab of this machine came or went
        visit.sign_in(name)
        yield visit
        visit.quiet()


def look(visit: Visit, name: str) -> None:
    """What axe says of this page, and a picture of it where pictures are asked for."""
    visit.check()
    if not (folder := os.environ.get("GPUAAS_SHOTS")):
        return
    for size in (WIDE, PHONE):
        for scheme in ("light", "dark"):
            visit.page.set_viewport_size(size)  # type: ignore[arg-type]
            visit.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            visit.page.wait_for_timeout(300)
            visit.page.screenshot(path=Path(folder) / f"{name}-{scheme}-{size['width']}.png", full_page=True)
    visit.page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    visit.page.emulate_media(color_scheme="light")


def succeeded(visit: Visit) -> None:
    expect(visit.page.get_by_text("Done.", exact=True)).to_be_visible(timeout=SLOW_MS)


def operation_of(url: str) -> str:
    return url.rpartition("/operations/")[2] if "/operations/" in url else ""


def steps_shown(visit: Visit) -> list[str]:
    return visit.page.locator("[data-steps] [data-step]").all_inner_texts()


def steps_told(ground: Ground, operation_id: str) -> list[str]:
    """In the platform's own events: each sentence that followed another one."""
    events = ground.demo.boss.list_project_events(ground.research, subject=operation_id, limit=1000).items
    told = [
        str(one.data["message"])
        for one in events
        if one.type == "apps.operation.progressed" and one.data.get("message")
    ]
    return [said for said, before in zip(told, [None, *told], strict=False) if said != before]


def steps_agree(visit: Visit, ground: Ground, operation_id: str) -> list[str]:
    """The page shows each step that was told, once and in order; the last ones may still be on their way to it."""
    told = steps_told(ground, operation_id)
    with contextlib.suppress(AssertionError):
        wait_until(lambda: steps_shown(visit) == told, 60, "the page to show the last steps")
    assert steps_shown(visit) == told, "a step was lost or told twice"
    return told


def cleared(ground: Ground, name: str) -> None:
    """The instance is gone, also after a failure in the middle of its journey: the next tests need its hosts."""
    boss, project = ground.demo.boss, ground.research
    for left in [one for one in boss.list_instances(project, limit=200).items if one.name == name]:
        for live in boss.list_operations(project, instance_id=left.id, history=False, limit=200).items:
            if live.kind != "decommission":
                with contextlib.suppress(Conflict):  # it has just ended
                    boss.cancel_operation(project, live.id)
            ground.ended(live.id)
        if ground.instance(left.id).state != "deleted":
            ground.gone(ground.instance(left.id))
