"""People come and go with clicks: a tenant begins, somebody is invited, gets roles, is shut out, and lends what they may."""

from collections.abc import Iterator

import pytest
from pages import Visit, expect, visiting
from playwright.sync_api import Browser, Page
from scene import Scene

PASSWORD, CLIENT = "correct horse battery", "console-of-the-test"


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("dialog").get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()


def confirm(page: Page, verb: str, name: str | None = None) -> None:
    dialog = page.get_by_role("dialog")
    if name:
        expect(dialog.get_by_role("button", name=verb, exact=True)).to_be_disabled()
        dialog.get_by_label(f"Type {name} to confirm").fill(name)
    dialog.get_by_role("button", name=verb, exact=True).click()
    expect(dialog).to_have_count(0)


def invite(page: Page, email: str, name: str, role: str) -> str:
    """The link, which is shown once."""
    page.get_by_role("button", name="Invite somebody").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("E-mail").fill(email)
    dialog.get_by_label("Name", exact=True).fill(name)
    choose(page, "Role", role)
    dialog.get_by_role("button", name="Make the invitation").click()
    link = dialog.get_by_text("/invitation#")
    expect(link).to_be_visible()
    expect(dialog.get_by_role("button", name="Copy the link")).to_be_visible()
    expect(dialog).to_contain_text(role)
    return link.inner_text()


def test_a_tenant_begins_with_an_invitation_and_its_administrator_makes_a_project(
    visit: Visit, stage: Scene, browser: Browser
) -> None:
    page = visit.page
    visit.sign_in("admin")
    visit.at("Tenants")
    visit.check()
    page.get_by_role("button", name="New tenant").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Ångström Labs")
    expect(dialog.get_by_label("Short name")).to_have_value("angstrom-labs")
    visit.check()
    dialog.get_by_role("button", name="Make it").click()
    visit.at("People")
    expect(page.get_by_text("Nobody has an account here yet.")).to_be_visible()
    link = invite(page, "ada@angstrom.example", "Ada", "tenant_admin")
    visit.check()
    page.get_by_role("button", name="I have sent it").click()
    expect(page.get_by_text("/invitation#")).to_have_count(0)

    with visiting(browser, stage, viewport={"width": 390, "height": 844}) as ada:
        ada.page.goto(link)
        expect(ada.page.get_by_role("button", name="Accept the invitation")).to_be_disabled()
        ada.check()
        ada.page.get_by_role("textbox", name="Password").fill(PASSWORD)
        ada.page.get_by_role("button", name="Accept the invitation").click()
        ada.at("Projects")
        ada.page.get_by_role("button", name="New project").click()
        ada.page.get_by_role("dialog").get_by_label("Name", exact=True).fill("Red")
        ada.page.get_by_role("dialog").get_by_label("Short name").fill("red")
        ada.page.get_by_role("dialog").get_by_role("button", name="Make it").click()
        ada.at("Entitlements")
        expect(ada.page.get_by_text("Red", exact=True).first).to_be_visible()
        ada.quiet()

        ada.page.goto(link)  # it was good once
        ada.page.reload()
        ada.page.get_by_role("textbox", name="Password").fill(PASSWORD)
        ada.page.get_by_role("button", name="Accept the invitation").click()
        expect(ada.page.get_by_role("alert")).to_contain_text("unknown, used, revoked or expired")

    page.get_by_role("tab", name="Invitations").click()
    expect(page.get_by_role("row").filter(has_text="ada@angstrom.example")).to_contain_text("Accepted")


def test_a_region_and_a_kind_of_machine_come_and_go(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("admin")
    dialog = page.get_by_role("dialog")
    for rest, heading, new, fields in (
        ("regions", "Regions", "New region", {"Name": "mars-1", "Title": "Mars"}),
        ("skus", "SKUs", "New SKU", {"Name": "b200-4", "GPU model": "B200", "Price of an hour": "24.5"}),
    ):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=heading).click()
        visit.at(heading)
        page.get_by_role("button", name=new).click()
        for label, value in fields.items():
            dialog.get_by_label(label, exact=True).fill(value)
        visit.check()
        confirm(page, "Add it")
        row = page.get_by_role("row").filter(has_text=fields["Name"])
        expect(row).to_contain_text({"regions": "Mars", "skus": "24.50 EUR"}[rest])
        visit.check()
        page.get_by_role("button", name=f"Delete {fields['Name']}").click()
        confirm(page, "Delete", fields["Name"])
        expect(row).to_have_count(0)


def test_a_person_gets_a_role_and_loses_it_and_is_shut_out_and_let_in(visit: Visit, stage: Scene) -> None:
    page, name = visit.page, "Lee Newcomer"
    stage.demo.boss.create_user(stage.demo.tenant_id, email="lee@demo.example", name=name, password=PASSWORD)
    visit.sign_in("dana")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="People", exact=True).click()
    visit.at("People")
    page.get_by_role("link", name=name).click()
    visit.at(name)
    expect(page.get_by_text("can sign in, and sees nothing")).to_be_visible()
    page.get_by_role("button", name="Give a role").click()
    choose(page, "Where", "In Training")
    choose(page, "Role", "project_viewer")
    confirm(page, "Give it")
    expect(page.get_by_role("row").filter(has_text="project_viewer")).to_contain_text("Training")
    visit.check()
    page.get_by_role("button", name=f"Take away project_viewer from {name}").click()
    confirm(page, "Take away", "project_viewer")
    expect(page.get_by_text("can sign in, and sees nothing")).to_be_visible()

    page.get_by_role("button", name="Disable").click()
    confirm(page, "Disable", name)
    expect(page.get_by_text("Disabled", exact=True)).to_be_visible()
    page.get_by_role("button", name="Enable").click()
    confirm(page, "Enable")
    expect(page.get_by_text("Active", exact=True)).to_be_visible()
    page.get_by_role("link", name="What they did").click()
    visit.at("Audit trail")
    expect(page.get_by_role("button", name="Only by usr")).to_be_visible()


def test_an_invitation_is_taken_back(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("dana")
    page.goto(f"{stage.url}/tenants/{stage.demo.tenant_id}/users?tab=invitations")
    visit.at("People")
    invite(page, "rob@demo.example", "Rob", "project_viewer")
    page.get_by_role("button", name="I have sent it").click()
    row = page.get_by_role("row").filter(has_text="rob@demo.example")
    expect(row).to_contain_text("Open")
    page.get_by_role("button", name="Revoke the invitation of Rob").click()
    confirm(page, "Revoke")
    expect(row).to_contain_text("Revoked")


def test_a_program_is_lent_what_somebody_may_and_loses_it(visit: Visit) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.go("delegations", "Delegations")
    expect(page.get_by_text("Nothing is lent here")).to_be_visible()
    page.get_by_role("button", name="Lend permissions").click()
    dialog = page.get_by_role("dialog")
    choose(page, "Project of the program", "Training")
    choose(page, "Program", "slurm-controller")
    dialog.get_by_role("combobox", name="Permissions").fill("apps.instance.read")
    page.get_by_role("option", name="apps.instance.read").click()
    page.keyboard.press("Escape")
    dialog.get_by_label("Why").fill("It looks after both projects.")
    visit.check()
    confirm(page, "Lend them")
    expect(page.get_by_text("It looks after both projects.")).to_be_visible()
    expect(page.get_by_text("Active", exact=True)).to_be_visible()
    page.get_by_role("button", name="Revoke: ").click()
    confirm(page, "Revoke")
    expect(page.get_by_text("Revoked", exact=True)).to_be_visible()


@pytest.fixture
def providers(stage: Scene) -> Iterator[str]:
    """Left as they were, also after a failure: the sign-in page offers them."""
    yield f"{stage.url}/tenants/{stage.demo.tenant_id}/identity-providers"
    boss, tenant_id = stage.demo.boss, stage.demo.tenant_id
    for left in boss.list_identity_providers(tenant_id).items:
        if left.client_id == CLIENT:
            boss.delete_identity_provider(tenant_id, left.id)


def test_a_provider_is_added_changed_and_deleted_and_its_secret_never_shown(visit: Visit, providers: str) -> None:
    page, secret = visit.page, "never-to-be-seen"
    visit.sign_in("dana")
    page.goto(providers)
    visit.at("Identity providers")
    page.get_by_role("button", name="Add a provider").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Directory")
    dialog.get_by_label("Issuer").fill("https://login.demo.example")
    dialog.get_by_label("Client id").fill(CLIENT)
    dialog.get_by_role("textbox", name="Client secret").fill(secret)
    choose(page, "Newcomers get", "project_viewer")
    visit.check()
    visit.allowed.append("422 (")  # the browser itself says so of the answer that comes now
    dialog.get_by_role("button", name="Add it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("e-mail domains")
    dialog.get_by_label("E-mail domains").fill("demo.example")
    page.keyboard.press("Enter")
    confirm(page, "Add it")
    expect(page.get_by_text("get project_viewer in the tenant")).to_be_visible()
    expect(page.get_by_text("/v1/auth/oidc/callback").first).to_be_visible()
    assert secret not in page.content()
    page.get_by_role("button", name="Change: Directory").click()
    dialog.get_by_label("Name", exact=True).fill("House directory")
    confirm(page, "Change it")
    page.get_by_role("button", name="Delete: House directory").click()
    confirm(page, "Delete", "House directory")
    expect(page.get_by_role("heading", name="House directory")).to_have_count(0)


def test_whoever_may_not_give_roles_reads_why(visit: Visit, stage: Scene) -> None:
    page, boss, tenant_id = visit.page, stage.demo.boss, stage.demo.tenant_id
    kay = boss.create_user(tenant_id, email="kay@demo.example", name="Kay", password=PASSWORD)
    boss.create_role_binding(tenant_id, principal_id=kay.id, role="project_admin", project_id=stage.research)
    stage.people["kay"] = ("kay@demo.example", PASSWORD)
    visit.sign_in("kay")
    visit.go("access", "People and access")
    page.get_by_role("button", name="Give a role: why not?").click()
    expect(page.get_by_text("iam.binding.create")).to_be_visible()
    expect(page.get_by_role("button", name="Take away")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="People", exact=True)).to_have_count(0)
