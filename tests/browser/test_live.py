"""Live updates: one event stream serves all tabs of a browser, and lists change while a person looks at them."""

from playwright.sync_api import Request

from tests.browser.support.browser_stack import Scene
from tests.browser.support.pages import WAIT_MS, Visit, expect

TABS = 10
PASSWORD = "correct horse battery"


def test_ten_tabs_share_one_event_stream_and_stay_live(visit: Visit, stage: Scene) -> None:
    context, streams = visit.page.context, set[Request]()
    context.on("request", lambda one: streams.add(one) if "/events/stream" in one.url else None)
    context.on("requestfailed", lambda one: streams.discard(one))
    context.on("requestfinished", lambda one: streams.discard(one))
    visit.sign_in("dana")
    tabs = [visit.page, *(context.new_page() for _ in range(TABS - 1))]
    for tab in tabs[1:]:
        tab.goto(f"{stage.url}/tenants/{stage.demo.tenant_id}/users")
        expect(tab.get_by_role("heading", level=1, name="People", exact=True)).to_be_visible()
    for tab in tabs:
        expect(tab.locator("[data-live=Live]")).to_be_visible()
    assert len(streams) == 1, [one.url for one in streams]

    stage.demo.boss.create_user(stage.demo.tenant_id, email="ten@demo.example", name="Ten Tabs", password=PASSWORD)
    for tab in tabs[1:]:
        expect(tab.get_by_role("link", name="Ten Tabs")).to_be_visible()

    visit.page.close()  # it had opened the stream; another tab takes over
    stage.demo.boss.create_user(stage.demo.tenant_id, email="nine@demo.example", name="Nine Tabs", password=PASSWORD)
    for tab in tabs[1:]:
        expect(tab.get_by_role("link", name="Nine Tabs")).to_be_visible()
    open_streams = [one.url for one in streams if not one.frame.page.is_closed()]
    assert len(open_streams) == 1, open_streams


def test_a_person_who_accepts_an_invitation_appears_in_the_list(visit: Visit, stage: Scene) -> None:
    boss, tenant_id = stage.demo.boss, stage.demo.tenant_id
    invited = boss.invite(tenant_id, email="live@demo.example", name="Liv Live")
    visit.sign_in("dana")
    visit.page.goto(f"{stage.url}/tenants/{tenant_id}/users")
    visit.at("People")
    expect(visit.page.locator("[data-live=Live]")).to_be_visible()
    expect(visit.page.get_by_role("link", name="Liv Live")).to_have_count(0)
    body = {"token": invited.token, "password": PASSWORD}
    answer = visit.page.context.request.post(f"{stage.url}/v1/invitations/accept", data=body, timeout=WAIT_MS)
    assert answer.ok, answer.text()
    expect(visit.page.get_by_role("link", name="Liv Live")).to_be_visible()


def test_escape_closes_an_open_list_and_keeps_the_dialog(visit: Visit) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.go("allocations", "Allocations")
    page.get_by_role("button", name="Add machine").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("kept")
    lease = dialog.get_by_role("combobox", name="Lease")
    lease.click()
    expect(page.get_by_role("option", name="7 days")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("option", name="7 days")).to_have_count(0)
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("kept")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_the_form_proposes_a_name_that_is_free(visit: Visit, stage: Scene) -> None:
    boss = stage.demo.boss
    free = next(one.id for one in boss.list_allocations(stage.research, limit=200).items if not one.in_use_by)
    made = boss.deploy(
        stage.research,
        name="notebooks-1",
        app_slug="notebooks",
        topology="together",
        placement_intent={"hub": [free]},
        inputs={"greeting": "Hello"},
    ).instance
    visit.sign_in("dana")
    visit.go("deploy/notebooks", "Deploy Notebooks")
    expect(visit.page.get_by_label("Name", exact=True)).to_have_value("notebooks-2")
    boss.decommission(stage.research, made.id)


def test_the_audit_trail_fits_its_frame(visit: Visit, stage: Scene) -> None:
    visit.sign_in("dana")
    visit.page.goto(f"{stage.url}/tenants/{stage.demo.tenant_id}/audit")
    visit.at("Audit trail")
    expect(visit.page.get_by_role("link", name="Trace ").first).to_be_visible()
    frame = visit.page.get_by_role("region", name="Audit entries")
    assert frame.evaluate("frame => frame.scrollWidth - frame.clientWidth") <= 0
