"""Who may do what: policies, entitlements, roles, deny rules and the keys of programs, changed with clicks."""

import json
from pathlib import Path

from gpuaas_sdk import Client, ServiceAccount

from tests.browser.support.browser_stack import Scene
from tests.browser.support.pages import Visit, expect


def test_a_policy_is_put_in_force_explained_and_removed(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.go("policies", "Policies")
    page.get_by_role("button", name="Create policy").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("earth-only")
    dialog.get_by_role("combobox", name="Restrict to (optional)").click()
    page.get_by_role("option", name="Regions").click()
    dialog.get_by_label("Regions: denied").fill("mars")
    page.keyboard.press("Enter")
    dialog.get_by_label("Reason").fill("Too far away.")
    visit.check()
    dialog.get_by_role("button", name="Apply policy").click()
    expect(page.get_by_text("not mars")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Regions")).to_contain_text("Too far away")
    page.get_by_role("combobox", name="Name", exact=True).fill("mars")
    page.get_by_role("button", name="Check").press("Enter")
    expect(page.get_by_text("mars is not allowed.")).to_be_visible()
    visit.check()

    page.get_by_role("button", name="Edit earth-only").click()
    dialog.get_by_role("checkbox", name="Allow only selected").check()
    dialog.get_by_label("Regions: allowed").fill("default")
    page.keyboard.press("Enter")
    dialog.get_by_role("combobox", name="Restrict to (optional)").click()
    page.get_by_role("option", name="Apps").click()
    dialog.get_by_label("Apps: denied").click()
    page.get_by_role("option", name="renderer", exact=True).click()  # what there is, is offered
    page.keyboard.press("Escape")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("only default; not mars")).to_be_visible()
    expect(page.get_by_text("not renderer")).to_be_visible()
    page.get_by_role("button", name="Remove earth-only").click()
    expect(dialog.get_by_role("button", name="Remove")).to_be_disabled()
    dialog.get_by_label("Type earth-only to confirm").fill("earth-only")
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No policies yet")).to_be_visible()


def test_an_app_is_enabled_in_a_project_and_removed(visit: Visit) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.go("entitlements", "Entitlements")
    page.get_by_role("button", name="Enable: Renderer").click()
    dialog = page.get_by_role("dialog")
    visit.check()
    dialog.get_by_role("button", name="Enable Renderer").click()
    expect(page.get_by_role("button", name="Edit: Renderer")).to_be_visible()
    visit.go("catalog", "Catalog")
    expect(page.get_by_role("link", name="Deploy")).to_have_count(2)
    visit.go("entitlements", "Entitlements")
    page.get_by_role("button", name="Remove: Renderer").click()
    dialog.get_by_label("Type renderer to confirm").fill("renderer")
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No instance of it is running.")).to_be_visible()
    expect(page.get_by_role("button", name="Enable: Renderer")).to_be_visible()


def test_a_user_who_may_not_change_them_reads_why(visit: Visit) -> None:
    page = visit.page
    visit.sign_in("sam")
    visit.go("entitlements", "Entitlements")
    page.get_by_role("button", name="why not?").first.click()
    expect(page.get_by_text("You need the Tenant admin role.")).to_be_visible()
    visit.check()
    visit.go("policies", "Policies")
    page.get_by_role("button", name="Create policy: why not?").click()
    expect(page.get_by_text("You need the Tenant admin role.")).to_be_visible()
    expect(page.get_by_text("Not restricted").first).to_be_visible()


def test_roles_are_made_given_denied_and_taken_away(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("dana")
    page.goto(f"{stage.url}/tenants/{stage.demo.tenant_id}/roles?tab=roles")
    visit.at("Roles")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Create role").click()
    dialog.get_by_label("Name").fill("looker")
    dialog.get_by_role("combobox", name="Permissions").fill("apps.instance.read")
    page.get_by_role("option", name="apps.instance.read").click()
    page.keyboard.press("Escape")
    dialog.get_by_role("button", name="Create role").click()
    expect(page.get_by_role("heading", name="looker")).to_be_visible()

    page.get_by_role("tab", name="Assignments").click()
    page.get_by_role("button", name="Assign role").click()
    for label, chosen in {"Name": "Sam (project member)", "Scope": "Training", "Role": "looker"}.items():
        dialog.get_by_role("combobox", name=label).click()
        page.get_by_role("option", name=chosen, exact=True).click()
    visit.check()
    dialog.get_by_role("button", name="Assign", exact=True).click()
    taken = page.get_by_role("button", name="Revoke looker from Sam (project member)")
    expect(taken).to_be_visible()

    page.get_by_role("tab", name="Deny rules").click()
    page.get_by_role("button", name="Add deny rule").click()
    dialog.get_by_label("Permissions").fill("apps.instance.upgrade")
    page.keyboard.press("Enter")
    dialog.get_by_label("Reason").fill("No upgrades this week.")
    dialog.get_by_role("button", name="Add rule").click()
    expect(page.get_by_text("No upgrades this week.")).to_be_visible()
    page.get_by_role("combobox", name="Name").first.click()
    page.get_by_role("option", name="Dana (tenant admin)").click()
    page.get_by_role("combobox", name="Permission", exact=True).fill("apps.instance.upgrade")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Dana (tenant admin): not allowed.")).to_be_visible()
    visit.check()
    page.get_by_role("button", name="Remove: No upgrades this week.").click()
    dialog.get_by_role("button", name="Remove rule").click()
    expect(page.get_by_text("No deny rules yet")).to_be_visible()

    page.get_by_role("tab", name="Assignments").click()
    taken.click()
    dialog.get_by_label("Type looker to confirm").fill("looker")
    dialog.get_by_role("button", name="Revoke role").click()
    expect(taken).to_have_count(0)
    page.get_by_role("tab", name="Roles", exact=True).click()
    page.get_by_role("button", name="Delete looker").click()
    dialog.get_by_label("Type looker to confirm").fill("looker")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="looker")).to_have_count(0)


def test_a_program_gets_its_key_as_a_file_that_is_never_shown(visit: Visit, stage: Scene, tmp_path: Path) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.go("service-accounts", "Service accounts")
    page.get_by_role("button", name="Create service account").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("robot")
    visit.check()
    first = _saved(visit, "Create and save key file", tmp_path / "first.json")
    assert _whoami(first) == "robot"
    page.get_by_role("button", name="New key: robot").click()
    second = _saved(visit, "New key", tmp_path / "second.json")
    assert _whoami(second) == "robot"
    for path in (first, second):
        assert json.loads(path.read_text())["private_jwk"]["d"] not in page.content()
    page.get_by_role("button", name=f"Retire {json.loads(first.read_text())['key_id']}").click()
    dialog.get_by_role("button", name="Retire key").click()
    expect(page.get_by_text("Retired").first).to_be_visible()
    page.get_by_role("button", name="Delete: robot").click()
    dialog.get_by_label("Type robot to confirm").fill("robot")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="robot")).to_have_count(0)


def _saved(visit: Visit, button: str, path: Path) -> Path:
    with visit.page.expect_download() as download:
        visit.page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()
    download.value.save_as(path)
    return path


def _whoami(identity: Path) -> str:
    with Client.for_service_account(ServiceAccount.load(identity)) as program:
        return program.whoami().principal.name
