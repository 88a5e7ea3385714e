"""What people do in the console, from the first sign-in to a torn down instance, and every way out of trouble.

The app is one the console has never heard of: what is shown of it comes from its manifest.
"""

import re

from playwright.sync_api import Locator

from tests.browser.support.browser_stack import Scene
from tests.browser.support.pages import Visit, expect

REFUSED = ["status of 401"]  # the browser itself says so of the answer that the test provokes


def choose(visit: Visit, group: str, *machines: str) -> None:
    for machine in machines:
        visit.page.get_by_role("group", name=group, exact=True).get_by_text(machine, exact=True).click()


def deploy(visit: Visit, name: str, hub: str, *runners: str, trouble: str = "none", operator: str = "") -> None:
    page = visit.page
    visit.go("catalog", "Catalog")
    page.get_by_role("link", name="Deploy").click()
    visit.at("Deploy Notebooks")
    expect(page.get_by_role("button", name="Check plan")).to_be_disabled()
    page.get_by_label("Name", exact=True).fill(name)
    if runners:
        page.get_by_label("A hub, and runners on machines of their own").check()
        choose(visit, "Hub", hub)
        choose(visit, "Runner", *runners)
    else:
        choose(visit, "Hub and Runner", hub)
    if operator:
        page.get_by_role("combobox", name="Operator").click()
        page.get_by_role("option", name=operator, exact=True).click()
    page.get_by_label("Greeting").fill("Hello, team")
    page.get_by_label("Trouble").select_option(trouble)
    page.get_by_role("button", name="Check plan").click()
    expect(page.locator("[data-plan]")).to_contain_text(f"as '{name}' on {1 + len(runners)} machine")
    page.get_by_role("button", name="Deploy", exact=True).click()
    visit.at(f"Deploy {name}")


def succeeded(visit: Visit) -> None:
    expect(visit.page.get_by_text("Done.", exact=True)).to_be_visible()


def row(visit: Visit, machine: str) -> Locator:
    return visit.page.get_by_role("row").filter(has_text=machine)


def actions_of(visit: Visit, machine: str) -> str:
    """Opens the menu of the member on this machine; its name, as the CLI has it."""
    button = row(visit, machine).get_by_role("button", name=re.compile("^Actions of "))
    button.click()
    return (button.get_attribute("aria-label") or "").removeprefix("Actions of ")


def ask(visit: Visit, machine: str, action: str, *, confirmed: bool = False) -> None:
    """One of a member's actions, through its dialog."""
    page = visit.page
    name = actions_of(visit, machine)
    page.get_by_role("menuitem", name=action, exact=True).click()
    dialog = page.get_by_role("dialog")
    if confirmed:
        expect(dialog.get_by_role("button", name=action)).to_be_disabled()
        dialog.get_by_label(f"Type {name} to confirm").fill(name)
    dialog.get_by_role("button", name=action).click()
    succeeded(visit)
    page.go_back()


def test_from_the_first_sign_in_to_a_torn_down_instance(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.at("Instances")
    visit.check()
    visit.go("catalog", "Catalog")
    expect(page.get_by_text("has not entitled this project", exact=False)).to_be_visible()
    visit.check()
    deploy(visit, "team", "gpu-a1", "gpu-a2", "gpu-a3", operator="slurm-controller")
    succeeded(visit)
    for step in ("Checking the machines", "Installing the hub", "Opening the first notebook"):
        expect(page.locator("[data-steps]").get_by_text(step)).to_be_visible()
    visit.check()

    page.get_by_role("link", name="team").first.click()
    visit.at("team")
    expect(page.locator("[data-health=healthy]")).to_contain_text("2 runners ready")
    expect(page.get_by_role("img", name=re.compile("Members on 3 machines"))).to_be_visible()
    for machine in ("gpu-a1", "gpu-a2", "gpu-a3"):
        expect(page.locator("[data-topology]").get_by_text(machine)).to_be_visible()
    expect(page.get_by_text("Every runner has a free GPU")).to_be_visible()
    visit.check()

    page.get_by_role("button", name="Add runners").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Used by team").first).to_be_visible()
    dialog.get_by_text("gpu-b1", exact=True).click()
    expect(dialog.locator("[data-plan]")).to_contain_text("gpu-b1")
    visit.check()
    dialog.get_by_role("button", name="Add runners").click()
    succeeded(visit)
    page.go_back()
    expect(row(visit, "gpu-b1")).to_contain_text("Ready")

    expect(row(visit, "gpu-b1").get_by_role("link", name="runner/2", exact=True)).to_be_visible()
    expect(page.get_by_role("img", name="gpu-b1: runner/2 Ready")).to_be_visible()
    ask(visit, "gpu-b1", "Drain")
    expect(row(visit, "gpu-b1")).to_contain_text("Drained")
    ask(visit, "gpu-b1", "Remove", confirmed=True)
    expect(row(visit, "gpu-b1")).to_have_count(0)

    page.get_by_role("tab", name="Access").click()
    expect(page.get_by_text("notebooks open https://team.notebooks.example")).to_be_visible()
    visit.check()
    page.get_by_role("tab", name="Settings").click()
    expect(page.get_by_text("Hello, team")).to_be_visible()
    expect(page.get_by_text("Operator", exact=True)).to_be_visible()
    expect(page.get_by_text("Any operator of the app")).to_have_count(0)
    visit.check()
    page.get_by_role("tab", name="History").click()
    expect(page.get_by_role("link", name="Drain member")).to_be_visible()
    visit.check()

    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Decommission").click()
    expect(dialog.locator("[data-plan]")).to_contain_text("Tear 'team' down on 3 machines")
    expect(dialog.get_by_role("button", name="Decommission")).to_be_disabled()
    dialog.get_by_label("Type team to confirm").fill("team")
    dialog.get_by_role("button", name="Decommission").click()
    expect(page.get_by_text("Removed from all machines. The cleanup of each is verified below.")).to_be_visible()
    visit.go("instances", "Instances")
    expect(page.get_by_text("No instances yet")).to_be_visible()


def test_a_failure_says_what_to_do_and_a_retry_succeeds(visit: Visit) -> None:
    visit.sign_in("dana")
    deploy(visit, "unlucky", "gpu-a1", trouble="once")
    alert = visit.page.get_by_role("alert")
    expect(alert).to_contain_text("The image could not be fetched")
    expect(alert).to_contain_text("Look whether the mirror is up, then retry.")
    expect(alert.get_by_role("button", name="Copy the trace ID")).to_be_visible()
    visit.check()
    visit.page.get_by_role("button", name="Retry").click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    succeeded(visit)


def test_progress_goes_on_after_a_lost_connection(visit: Visit, stage: Scene) -> None:
    visit.allowed = ["ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED", "status of 503"]
    visit.sign_in("dana")
    visit.at("Instances")
    expect(visit.page.locator("[data-live=Live]")).to_be_visible()
    stage.stop_core()
    expect(visit.page.locator("[data-live=Reconnecting]")).to_be_visible()
    stage.start_core()
    stage.demo.boss.deploy(
        stage.research,
        name="meanwhile",
        app_slug="notebooks",
        topology="together",
        placement_intent={"hub": [_allocation(stage, "gpu-b1")]},
        inputs={"greeting": "Hello"},
    )
    expect(visit.page.locator("[data-live=Live]")).to_be_visible()
    expect(row(visit, "meanwhile")).to_contain_text("Running")


def test_a_user_without_a_permission_reads_which_role_has_it(visit: Visit, stage: Scene) -> None:
    visit.sign_in("sam")
    visit.go("catalog", "Catalog")
    visit.page.get_by_role("button", name="Deploy").click()
    expect(visit.page.get_by_text("You need the Project admin role.")).to_be_visible()
    visit.check()
    visit.go("instances", "Instances")
    visit.page.get_by_role("link", name="meanwhile").click()
    visit.page.get_by_role("button", name="Actions").first.click()
    expect(visit.page.get_by_text("You need the Project admin role.")).to_be_visible()
    expect(visit.page.get_by_role("menuitem", name="Decommission")).to_have_attribute("aria-disabled", "true")
    visit.check()


def test_a_wrong_password_is_said_and_signing_out_leaves_nothing(visit: Visit) -> None:
    visit.allowed = REFUSED
    page = visit.page
    page.goto(visit.scene.page("operations"))
    visit.check()
    page.get_by_label("E-mail").fill("dana@demo.example")
    page.get_by_role("textbox", name="Password").fill("not my password")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("E-mail or password is wrong")
    page.get_by_role("textbox", name="Password").fill(visit.scene.person("dana")[1])
    page.get_by_role("button", name="Sign in", exact=True).click()
    visit.at("Operations")
    page.get_by_role("button", name="Signed in as").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to GPUaaS")).to_be_visible()
    page.goto(visit.scene.page("instances"))
    expect(page.get_by_role("heading", name="Sign in to GPUaaS")).to_be_visible()


def test_settings_are_changed_in_the_form_the_app_declares(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.go("instances", "Instances")
    page.get_by_role("link", name="meanwhile").click()
    visit.at("meanwhile")
    page.get_by_role("button", name="Actions", exact=True).click()
    page.get_by_role("menuitem", name="Change settings").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Greeting").fill("Good morning")
    dialog.get_by_label("Idle minutes").fill("5")
    visit.check()
    dialog.get_by_role("button", name="Change settings").click()
    succeeded(visit)
    page.get_by_role("link", name="meanwhile").first.click()
    page.get_by_role("tab", name="Settings").click()
    expect(page.get_by_text("Good morning")).to_be_visible()
    expect(page.get_by_text("2 of 2 applied")).to_be_visible()


def test_people_of_an_organisation_are_led_to_its_provider(visit: Visit, stage: Scene) -> None:
    provider = stage.demo.boss.create_identity_provider(
        stage.demo.tenant_id, name="Demo login", issuer="http://127.0.0.1:9", client_id="console"
    )
    page = visit.page
    page.goto(f"{stage.url}/sign-in")
    page.get_by_role("button", name="Sign in with your organisation").click()
    page.get_by_label("Organisation").fill("not-here")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("No identity provider found.")).to_be_visible()
    page.get_by_label("Organisation").fill("demo")
    page.get_by_role("button", name="Continue").click()
    way = page.get_by_role("link", name="Continue with Demo login")
    expect(way).to_have_attribute("href", provider.start_url)
    visit.check()


def test_a_platform_administrator_sees_tenants_and_no_projects(visit: Visit, stage: Scene) -> None:
    visit.sign_in("admin")
    visit.at("Tenants")
    visit.check()
    visit.page.get_by_role("link", name="Machines").click()
    visit.at("Machines")
    expect(visit.page.get_by_role("row").filter(has_text="gpu-a1")).to_contain_text("Ready")
    visit.page.get_by_role("link", name="Policies").click()
    visit.at("Platform policies")
    visit.page.get_by_role("button", name="Create policy").click()
    expect(visit.page.get_by_role("dialog").get_by_label("Platform-managed apps")).to_be_visible()
    visit.check()


def _allocation(stage: Scene, name: str) -> str:
    return next(one.id for one in stage.demo.boss.list_allocations(stage.research, limit=200).items if one.name == name)
