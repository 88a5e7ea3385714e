"""Every page, in light and dark, wide and on a phone: nothing serious for axe, nothing refused by the policy, small."""

import gzip
import re
from pathlib import Path
from typing import Any

import gpuaas_core
import pytest

from tests.browser.support.browser_stack import Scene
from tests.browser.support.pages import Visit, expect
from tests.browser.test_journeys import deploy, succeeded

FILES = Path(gpuaas_core.__file__).parent / "console_files"
OF_PROJECT = {
    "instances": "Instances",
    "catalog": "Catalog",
    "deploy/notebooks": "Deploy Notebooks",
    "operations": "Operations",
    "allocations": "Allocations",
    "events": "Events",
    "service-accounts": "Service accounts",
    "credentials": "Credentials",
    "access": "Access",
    "delegations": "Delegations",
    "entitlements": "Entitlements",
    "policies": "Policies",
}
OF_TENANT = {
    "projects": "Projects",
    "nodes": "Machines",
    "users": "People",
    "users?tab=invitations": "People",
    "identity-providers": "Identity providers",
    "roles": "Roles",
    "roles?tab=roles": "Roles",
    "roles?tab=denied": "Roles",
    "policies": "Tenant policies",
    "audit": "Audit trail",
}
OF_PLATFORM = {"tenants": "Tenants", "regions": "Regions", "skus": "SKUs", "policies": "Platform policies"}
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
MOST_KB = 250


def look(name: str, viewport: Any, scheme: str) -> Any:
    return pytest.param({"viewport": viewport, "color_scheme": scheme}, id=name)


@pytest.mark.parametrize(
    "visit", [look("wide, light", WIDE, "light"), look("phone, dark", PHONE, "dark")], indirect=True
)
def test_every_page_can_be_used_by_everybody(visit: Visit, stage: Scene) -> None:
    if visit.page.viewport_size == PHONE:
        visit.page.goto(stage.url)
        visit.check()
    visit.sign_in("dana")
    for rest, heading in OF_PROJECT.items():
        visit.go(rest, heading)
        visit.check()
        _fits(visit)
    for rest, heading in OF_TENANT.items():
        visit.page.goto(f"{stage.url}/tenants/{stage.demo.tenant_id}/{rest}")
        visit.at(heading)
        visit.check()
        _fits(visit)
    visit.page.goto(f"{stage.url}/triage")
    visit.at("Triage")
    visit.check()


def _fits(visit: Visit) -> None:
    """Nothing but tables, inside their own frames, is wider than the window."""
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert visit.page.evaluate(wide) <= 0, f"{visit.page.url} is wider than the window"


def test_one_instance_from_its_operation_to_its_triage_by_keyboard_and_links(visit: Visit) -> None:
    page = visit.page
    visit.sign_in("dana")
    deploy(visit, "linked", "gpu-a2")
    succeeded(visit)
    operation = page.url
    page.get_by_role("link", name=re.compile("^cor-")).first.click()
    visit.at("Triage")
    expect(page.get_by_text("The deploy of linked")).to_be_visible()
    expect(page.get_by_text("Installing the hub")).to_be_visible()
    visit.check()
    page.goto(operation)
    visit.at("Deploy linked")
    page.get_by_role("link", name="linked").first.press("Enter")
    visit.at("linked")
    page.get_by_role("link", name="hub/0").press("Enter")
    visit.at("hub/0 on gpu-a2")
    visit.check()
    page.get_by_role("button", name="Actions").press("Enter")
    expect(page.get_by_text("Everything is on one machine here").first).to_be_visible()


def test_access_is_explained_and_the_audit_trail_verified(visit: Visit, stage: Scene) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.go("access", "Access")
    page.get_by_role("combobox", name="Name").first.click()
    page.get_by_role("option", name="Sam (project member)").click()
    page.get_by_role("combobox", name="Permission").fill("apps.instance.create")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Sam (project member): not allowed.")).to_be_visible()
    page.goto(f"{stage.url}/tenants/{stage.demo.tenant_id}/audit")
    visit.at("Audit trail")
    page.get_by_role("button", name="Verify trail").click()
    expect(page.get_by_text("rows are intact")).to_be_visible()
    page.get_by_label("Permission starts with").fill("tenancy.project.")
    expect(page.get_by_role("row").filter(has_text="capacity.enrolment.create")).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="tenancy.project.create").first).to_be_visible()


def test_a_credential_is_made_rotated_and_revoked_and_never_shown(visit: Visit) -> None:
    page = visit.page
    visit.sign_in("dana")
    visit.go("credentials", "Credentials")
    page.get_by_role("button", name="Create key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("mirror")
    dialog.get_by_role("button", name="Create key").click()
    expect(page.get_by_text("ssh-ed25519").first).to_be_visible()
    page.get_by_role("button", name="Rotate: mirror").click()
    dialog.get_by_role("button", name="Rotate").click()
    expect(page.get_by_text("Rotating")).to_be_visible()
    page.get_by_role("button", name="Revoke: mirror").click()
    dialog.get_by_label("Reason").fill("The mirror is gone.")
    dialog.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("button", name="Revoke: mirror")).to_have_count(0)
    assert "PRIVATE KEY" not in page.content()


def test_the_script_of_the_first_load_is_small() -> None:
    page = (FILES / "index.html").read_text()
    first = re.findall(r'(?:src|href)="(/assets/[^"]+\.js)"', page)
    assert first
    size = sum(len(gzip.compress((FILES / path.lstrip("/")).read_bytes(), 6)) for path in first) / 1024
    assert size < MOST_KB, f"{size:.0f} kB of script before anything is seen"


def test_the_console_knows_no_app() -> None:
    words = re.compile(r"slurm|sbatch|squeue|\bray\b|notebooks", re.IGNORECASE)
    sources = Path(__file__).parents[2] / "console/src"
    found = [
        str(path) for path in sources.rglob("*.ts*") if ".gen." not in path.name and words.search(path.read_text())
    ]
    assert not found
