"""An instance with 200 members and 5,000 operations behind it stays small on the wire and on the screen."""

import re

import pytest

from tests.browser.support.browser_stack import Scene
from tests.browser.support.bulk_data import MEMBERS, NAME, crowd
from tests.browser.support.page_metrics import MOST_ANSWER_KB, MOST_ROWS, MOST_SCRIPT_KB, MOST_SHIFT, Watch
from tests.browser.support.pages import Visit, expect


@pytest.fixture(scope="module")
def address(stage: Scene) -> str:
    return stage.url + crowd(stage)


def steady(watch: Watch) -> None:
    """Nothing jumped without a click, and the screen holds a page of rows however many there are."""
    seen = watch.seen()
    assert seen["shift"] < MOST_SHIFT, seen["shifts"]
    assert 0 < watch.rows() <= MOST_ROWS, watch.page.url
    watch.read()
    assert watch.largest[0] < MOST_ANSWER_KB, watch.largest


def test_an_instance_of_two_hundred_members_is_read_in_pages(visit: Visit, address: str) -> None:
    page, watch = visit.page, Watch(visit.page)
    visit.sign_in("dana")
    visit.at("Instances")
    watch.read()
    assert watch.script_kb < MOST_SCRIPT_KB, f"{watch.script_kb:.0f} kB of script before anything is seen"

    page.goto(address)
    visit.at(NAME)
    expect(page.get_by_role("img", name=re.compile(f"Members by component.*Runner × {MEMBERS - 1}"))).to_be_visible()
    expect(page.get_by_text(f"{MEMBERS} in total")).to_be_visible()
    pager = page.get_by_role("navigation", name="Pages of this list")
    steady(watch)
    visit.check()
    pager.get_by_role("button", name="Next").press("Enter")
    expect(pager.get_by_text("Page 2")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="big-050")).to_be_visible()
    steady(watch)

    page.get_by_role("button", name="Add runners").click()
    page.get_by_role("textbox", name=re.compile("^Search: Machines")).fill("big-19")
    expect(page.get_by_role("checkbox")).to_have_count(10)
    steady(watch)


def test_a_long_history_begins_with_what_happened_last(visit: Visit, address: str) -> None:
    page, watch = visit.page, Watch(visit.page)
    visit.sign_in("dana")
    page.goto(f"{address}?tab=history")
    expect(page.get_by_text("Restart 4999 of 5000")).to_be_visible()
    steady(watch)
    pager = page.get_by_role("navigation", name="Pages of this list")
    for number in (2, 3):
        pager.get_by_role("button", name="Next").click()
        expect(pager.get_by_text(f"Page {number}")).to_be_visible()
    expect(page.get_by_text("Restart 4899 of 5000")).to_be_visible()
    pager.get_by_role("button", name="Previous").click()
    expect(page.get_by_text("Restart 4949 of 5000")).to_be_visible()
    steady(watch)
    project = address.partition("/instances/")[0]
    for rest, heading in {"operations": "Operations", "allocations": "Allocations", "events": "Events"}.items():
        page.goto(f"{project}/{rest}")
        visit.at(heading)
        steady(watch)
    page.goto(f"{visit.scene.url}/tenants/{visit.scene.demo.tenant_id}/nodes")
    visit.at("Machines")
    steady(watch)
