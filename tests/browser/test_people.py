"""People in the console: a tenant is created, a person invited, given roles, disabled, and delegates permissions."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.support.browser_stack import Scene
from tests.browser.support.pages import Visit, expect, visiting

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
    page.get_by_role("button", name="Invite person").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("E-mail").fill(email)
    dialog.get_by_label("Name", exact=True).fill(name)
    choose(page, "Role", role)
    dialog.get_by_role("button", name="Create invitation").click()
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
    page.get_by_role("button", name="Create tenant").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Ångström Labs")
    expect(dialog.get_by_label("Short name")).to_have_value("angstrom-labs")
    visit.check()
    dialog.get_by_role("button", name="Create tenant").click()
    visit.at("People")
    expect(page.get_by_text("No people yet.")).to_be_visible()
    link = invite(page, "ada@angstrom.example", "Ada", "Tenant admin")
    visit.check()
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_text("/invitation#")).to_have_count(0)

    with visiting(browser, stage, viewport={"width": 390, "height": 844}) as ada:
        ada.page.goto(link)
        expect(ada.page.get_by_role("button", name="Accept invitation")).to_be_disabled()
        ada.check()
        ada.page.get_by_role("textbox", name="Password").fill(PASSWORD)
        ada.page.get_by_role("button", name="Accept invitation").click()
        ada.at("Projects")
        ada.page.get_by_role("button", name="Create project").click()
        ada.page.get_by_role("dialog").get_by_label("Name", exact=True).fill("Red")
        ada.page.get_by_role("dialog").get_by_label("Short name").fill("red")
        ada.page.get_by_role("dialog").get_by_role("button", name="Create project").click()
        ada.at("Entitlements")
        expect(ada.page.get_by_text("Red", exact=True).first).to_be_visible()
        ada.quiet()

        ada.page.goto(link)  # it was good once
        ada.page.reload()
        ada.page.get_by_role("textbox", name="Password").fill(PASSWORD)
        ada.page.get_by_role("button", name="Accept invitation").click()
        expect(ada.page.get_by_role("alert")).to_contain_text("unknown, used, revoked or expired")

    page.get_by_role("tab", name="Invitations").click()
    expect(page.get_by_role("row").filter(has_text="ada@angstrom.example")).to_contain_text("Accepted")


def test_a_region_and_a_kind_of_machine_come_and_go(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("admin")
    dialog = page.get_by_role("dialog")
    for rest, heading, new, fields in (
        ("regions", "Regions", "Add region", {"Name": "mars-1", "Title": "Mars"}),
        ("skus", "SKUs", "Add SKU", {"Name": "b200-4", "GPU model": "B200", "Price per hour": "24.5"}),
    ):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=heading).click()
        visit.at(heading)
        page.get_by_role("button", name=new).click()
        for label, value in fields.items():
            dialog.get_by_label(label, exact=True).fill(value)
        visit.check()
        confirm(page, new)
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
    expect(page.get_by_text("can sign in but has no access yet")).to_be_visible()
    page.get_by_role("button", name="Assign role").click()
    choose(page, "Scope", "Training")
    choose(page, "Role", "Project viewer")
    confirm(page, "Assign")
    expect(page.get_by_role("row").filter(has_text="Project viewer")).to_contain_text("Training")
    visit.check()
    page.get_by_role("button", name=f"Revoke Project viewer from {name}").click()
    confirm(page, "Revoke role", "Project viewer")
    expect(page.get_by_text("can sign in but has no access yet")).to_be_visible()

    page.get_by_role("button", name="Disable").click()
    confirm(page, "Disable", name)
    expect(page.get_by_text("Disabled", exact=True)).to_be_visible()
    page.get_by_role("button", name="Enable").click()
    confirm(page, "Enable")
    expect(page.get_by_text("Active", exact=True)).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="Audit trail").click()
    visit.at("Audit trail")
    expect(page.get_by_role("button", name=f"By {name}")).to_be_visible()


def test_an_invitation_is_taken_back(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("dana")
    page.goto(f"{stage.url}/tenants/{stage.demo.tenant_id}/users?tab=invitations")
    visit.at("People")
    invite(page, "rob@demo.example", "Rob", "Project viewer")
    page.get_by_role("button", name="Done").click()
    row = page.get_by_role("row").filter(has_text="rob@demo.example")
    expect(row).to_contain_text("Open")
    page.get_by_role("button", name="Revoke invitation for Rob").click()
    confirm(page, "Revoke")
    expect(row).to_contain_text("Revoked")


def test_permissions_are_delegated_to_a_service_account_and_revoked(visit: Visit) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.go("delegations", "Delegations")
    expect(page.get_by_text("No delegations yet")).to_be_visible()
    page.get_by_role("button", name="Delegate").click()
    dialog = page.get_by_role("dialog")
    choose(page, "Account project", "Training")
    choose(page, "Service account", "slurm-controller")
    dialog.get_by_role("combobox", name="Permissions").fill("apps.instance.read")
    page.get_by_role("option", name="apps.instance.read").click()
    page.keyboard.press("Escape")
    dialog.get_by_label("Reason").fill("It looks after both projects.")
    visit.check()
    confirm(page, "Delegate")
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
    page.get_by_role("button", name="Add provider").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Directory")
    dialog.get_by_label("Issuer").fill("https://login.demo.example")
    dialog.get_by_label("Client ID").fill(CLIENT)
    dialog.get_by_role("textbox", name="Client secret").fill(secret)
    choose(page, "Default role", "Project viewer")
    visit.check()
    visit.allowed.append("422 (")  # the browser itself says so of the answer that comes now
    dialog.get_by_role("button", name="Add provider").click()
    expect(dialog.get_by_role("alert")).to_contain_text("e-mail domains")
    dialog.get_by_label("E-mail domains").fill("demo.example")
    page.keyboard.press("Enter")
    confirm(page, "Add provider")
    expect(page.get_by_text("Project viewer", exact=True)).to_be_visible()
    expect(page.get_by_text("/v1/auth/oidc/callback").first).to_be_visible()
    assert secret not in page.content()
    page.get_by_role("button", name="Edit: Directory").click()
    dialog.get_by_label("Name", exact=True).fill("House directory")
    confirm(page, "Save")
    page.get_by_role("button", name="Delete: House directory").click()
    confirm(page, "Delete", "House directory")
    expect(page.get_by_role("heading", name="House directory")).to_have_count(0)


def test_a_user_who_may_not_assign_roles_reads_why(visit: Visit, stage: Scene) -> None:
    page, boss, tenant_id = visit.page, stage.demo.boss, stage.demo.tenant_id
    kay = boss.create_user(tenant_id, email="kay@demo.example", name="Kay", password=PASSWORD)
    boss.create_role_binding(tenant_id, principal_id=kay.id, role="project_admin", project_id=stage.research)
    stage.people["kay"] = ("kay@demo.example", PASSWORD)
    visit.sign_in("kay")
    visit.go("access", "Access")
    page.get_by_role("button", name="Assign role: why not?").click()
    expect(page.get_by_text("You need the Tenant admin role. Ask Dana.")).to_be_visible()
    expect(page.get_by_role("button", name="Revoke")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="People", exact=True)).to_have_count(0)
