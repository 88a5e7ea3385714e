"""Every button of an instance, its members, its operations and its machines is pressed once, and what it does is seen."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from gpuaas_lab.stack.platform import wait_for

from tests.browser.support import notebooks
from tests.browser.support.browser_stack import Scene
from tests.browser.support.pages import Visit, expect
from tests.browser.test_journeys import actions_of, row, succeeded

NAME, NEWER = "pressed", "1.5.0"
GONE, GONE_VERB = "Machine is lost…", "Remove member"
CLOSE, CLOSE_VERB = "Force-close (cleanup not verified)", "Force-close"
MENU = re.compile("^(Actions|More)$")
PLACES = {"hub": ["gpu-a1"], "runner": ["gpu-a2", "gpu-a3"]}

# The button, what is chosen in its dialog, and what the instance's page then says.
OF_INSTANCE: list[tuple[str, str | None, str]] = [
    ("Put to sleep", None, "Stopped"),
    ("Wake up", None, "Running"),
    ("Change the version", NEWER, f"Notebooks {NEWER}"),
    ("Back to the last version", None, f"Notebooks {notebooks.VERSION}"),
]
# The member's machine, the button, the machine that is chosen, and the machine and state it then has.
OF_MEMBER: list[tuple[str, str, str | None, str, str]] = [
    ("gpu-a2", "Drain", None, "gpu-a2", "Drained"),
    ("gpu-a2", "Take work again", None, "gpu-a2", "Ready"),
    ("gpu-a2", "Restart", None, "gpu-a2", "Ready"),
    ("gpu-a3", "Replace", "gpu-b1", "gpu-b1", "Ready"),
]
OF_MACHINE = [("Cordon", "Cordoned"), ("Uncordon", "Ready"), ("Drain", "Draining"), ("Uncordon", "Ready")]


@pytest.fixture(scope="module")
def address(stage: Scene) -> Iterator[str]:
    """An instance of an app that holds on to its restarts and does not let members go."""
    admin, boss = stage.demo.admin, stage.demo.boss
    admin.create_version(notebooks.SLUG, version=NEWER, manifest=notebooks.MANIFEST | {"version": NEWER})
    held = {one.name: one.id for one in boss.list_allocations(stage.research, limit=200).items}
    wanted: dict[str, Any] = {"app_slug": notebooks.SLUG, "version": notebooks.VERSION, "topology": "apart"}
    places = {component: [held[name] for name in names] for component, names in PLACES.items()}
    inputs = {"greeting": "Hello", "trouble": "stubborn"}
    admin.publish_version(notebooks.SLUG, NEWER)
    made = boss.deploy(stage.research, name=NAME, placement_intent=places, inputs=inputs, **wanted).instance
    yield stage.page(f"instances/{made.id}")
    for orphan in boss.list_orphans(stage.research).items:
        boss.resolve_orphan(stage.research, orphan.id, reason="The test has looked.")
    boss.decommission(stage.research, made.id)
    wait_for(lambda: boss.get_instance(stage.research, made.id).state == "deleted", 60, lambda: f"{NAME} stays")


def press(visit: Visit, title: str) -> None:
    """As a button where it is the main thing to do, otherwise in the menu."""
    page = visit.page
    expect(page.get_by_role("button", name=MENU)).to_be_visible()
    button = page.get_by_role("button", name=title, exact=True)
    if button.count():
        return button.click()
    page.get_by_role("button", name=MENU).click()
    page.get_by_role("menuitem", name=title, exact=True).click()
    return None


def answer(visit: Visit, title: str, chosen: str | None = None) -> None:
    """In the dialog: a version or a machine if one is asked for, the name where it is dangerous, then the button."""
    dialog = visit.page.get_by_role("dialog")
    title = {GONE: GONE_VERB, CLOSE: CLOSE_VERB}.get(title, title)
    expect(dialog.get_by_role("button", name=title, exact=True)).to_be_visible()
    if chosen and dialog.get_by_role("combobox", name="Version").count():
        dialog.get_by_role("combobox", name="Version").click()
        visit.page.get_by_role("option", name=chosen, exact=True).click()
    elif chosen:
        dialog.get_by_role("radio", name=re.compile(f"^{chosen}")).click()
    if dialog.get_by_label("Reason").count():
        dialog.get_by_label("Reason").fill("The test wants it so.")
    asked = dialog.get_by_text(re.compile("^Type .* to confirm$"))
    if asked.count():
        expect(dialog.get_by_role("button", name=title)).to_be_disabled()
        name = asked.inner_text().removeprefix("Type ").removesuffix(" to confirm")
        dialog.get_by_label(asked.inner_text()).fill(name)
    dialog.get_by_role("button", name=title, exact=True).click()


def of_member(visit: Visit, machine: str, title: str, chosen: str | None = None) -> None:
    actions_of(visit, machine)
    visit.page.get_by_role("menuitem", name=title, exact=True).click()
    answer(visit, title, chosen)


def test_every_button_of_an_instance_and_its_members_does_what_it_says(visit: Visit, address: str) -> None:
    page = visit.page
    visit.sign_in("dana")
    page.goto(address)
    visit.at(NAME)
    expect(page.get_by_text("Running", exact=True)).to_be_visible()
    for title, chosen, afterwards in OF_INSTANCE:
        press(visit, title)
        answer(visit, title, chosen)
        succeeded(visit)
        page.goto(address)
        visit.at(NAME)
        expect(page.get_by_text(afterwards, exact=True).first).to_be_visible()
        if afterwards == "Stopped":
            page.get_by_role("button", name=MENU).click()
            expect(page.get_by_text("The instance is stopped; its members can be changed while")).to_be_visible()
            page.keyboard.press("Escape")
    for machine, title, chosen, there, state in OF_MEMBER:
        of_member(visit, machine, title, chosen)
        succeeded(visit)
        page.goto(address)
        visit.at(NAME)
        expect(row(visit, there)).to_contain_text(state)
    expect(row(visit, "gpu-a3")).to_have_count(0)


def test_what_does_not_let_go_is_called_off_taken_away_and_given_up(visit: Visit, stage: Scene, address: str) -> None:
    page = visit.page
    visit.sign_in("dana")
    page.goto(address)
    visit.at(NAME)
    _is_refused_while_it_reports(visit, "gpu-a2")
    stage.fleet.silent.add("gpu-a2")  # for the test after this one: what follows here takes longer than its silence
    of_member(visit, "gpu-b1", "Remove")
    expect(page.get_by_role("alert")).to_contain_text("does not let go of its notebooks")
    page.goto(address)
    visit.at(NAME)
    of_member(visit, "gpu-b1", CLOSE)
    expect(row(visit, "gpu-b1")).to_have_count(0)

    for ending in ("cancel", "abandon"):
        press(visit, "Restart")
        answer(visit, "Restart")
        visit.at(f"Restart {NAME}")
        expect(page.locator("[data-steps]").get_by_text("Waiting for every notebook to end")).to_be_visible()
        if ending == "cancel":
            press(visit, "Cancel operation")
            answer(visit, "Cancel operation")
            expect(page.get_by_text("Canceled", exact=True)).to_be_visible()
            page.goto(address)
            visit.at(NAME)
            continue
        press(visit, "Release claim")
        answer(visit, "Release claim")
        expect(page.get_by_text(re.compile(r"notebooks-1 \(claim [2-9]"))).to_be_visible()  # another epoch
        press(visit, CLOSE)
        answer(visit, CLOSE)
        expect(page.get_by_text("Needs attention", exact=True)).to_be_visible()
        visit.check()


def _is_refused_while_it_reports(visit: Visit, machine: str) -> None:
    visit.allowed.append("409 (")  # of the plan; the browser itself says so
    name = actions_of(visit, machine)
    visit.page.get_by_role("menuitem", name=GONE, exact=True).click()
    dialog = visit.page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("its agent reports")
    dialog.get_by_label("Reason").fill("It burned.")
    expect(dialog.get_by_role("button", name=GONE_VERB, exact=True)).to_be_disabled()
    dialog.get_by_label(f"Type {name} to confirm").fill(name)
    visit.check()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)


def test_a_member_whose_machine_died_is_replaced_without_it(visit: Visit, stage: Scene, address: str) -> None:
    boss, tenant_id = stage.demo.boss, stage.demo.tenant_id
    stage.fleet.silent.add("gpu-a2")

    def unheard() -> bool:
        return any(
            one.name == "gpu-a2" and one.state == "unknown" for one in boss.list_nodes(tenant_id, limit=200).items
        )

    visit.allowed.append("409 (")  # of the plan without a successor: the last runner is needed
    wait_for(unheard, 90, lambda: "the silence of gpu-a2 goes unnoticed")
    visit.sign_in("dana")
    visit.page.goto(address)
    visit.at(NAME)
    of_member(visit, "gpu-a2", GONE, "gpu-a3")
    succeeded(visit)
    visit.page.goto(address)
    visit.at(NAME)
    expect(row(visit, "gpu-a3")).to_contain_text("Ready")
    expect(row(visit, "gpu-a2")).to_have_count(0)
    assert [one.node_name for one in boss.list_orphans(stage.research).items if one.resolved_at is None]
    stage.fleet.silent.clear()


def test_machines_are_cordoned_and_drained_with_a_reason(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("dana")
    page.goto(f"{stage.url}/tenants/{stage.demo.tenant_id}/nodes")
    visit.at("Machines")
    for title, state in OF_MACHINE:
        page.get_by_role("button", name="Actions of gpu-d1").click()
        page.get_by_role("menuitem", name=title, exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Reason").fill(f"{title}, to see what happens.")
        dialog.get_by_role("button", name=title, exact=True).click()
        expect(row(visit, "gpu-d1")).to_contain_text(state)
