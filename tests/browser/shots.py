"""`make shots`: pictures of every page, light and dark, wide and narrow, of a scene where something happens."""

import re
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.browser.support.browser_stack import Scene, scene
from tests.browser.support.bulk_data import crowd
from tests.browser.support.pages import Visit, chromium, expect, visiting
from tests.browser.test_journeys import deploy, succeeded
from tests.browser.test_pages import OF_PLATFORM, OF_PROJECT, OF_TENANT, PHONE, WIDE

NO_PLATFORM = {"operating_modes": {"only": ["tenant_dedicated"]}}
LOOKS = {f"{scheme}-{size['width']}": (scheme, size) for scheme in ("light", "dark") for size in (WIDE, PHONE)}


def main(folder: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as root, scene(Path(root), port, speed=0.6) as made, chromium() as browser:
        with visiting(browser, made, viewport=WIDE) as visit:
            visit.sign_in("dana")
            addresses = _prepare(visit)
        for name, (scheme, size) in LOOKS.items():
            with visiting(browser, made, viewport=size, color_scheme=scheme) as visit:
                _take(visit, made, addresses, folder / name)
            with visiting(browser, made, viewport=size, color_scheme=scheme) as visit:
                _take_platform(visit, made, folder / name)
    print(f"The pictures are in {folder}/")


def _prepare(visit: Visit) -> dict[str, str]:
    """A running instance, one that failed, a crowded one, and rules to read."""
    boss, stage = visit.scene.demo.boss, visit.scene
    seen = {"crowd": stage.url + crowd(stage)}
    rules = {"regions": {"only": ["default", "eu-west"], "deny": ["mars"]}, "skus": {"deny": ["a100-1"]}}
    boss.set_project_policy(stage.research, "near-home", rules=rules, reason="Data stays near its people.")
    boss.set_tenant_policy(stage.demo.tenant_id, "no-platform-runs", rules=NO_PLATFORM, reason="We run apps ourselves.")
    seen |= _people(stage)
    deploy(visit, "team", "gpu-a1", "gpu-a2", "gpu-a3")
    succeeded(visit)
    seen["operation"] = visit.page.url
    visit.page.get_by_role("link", name="team").first.click()
    visit.at("team")
    seen |= _of_instance(visit)
    deploy(visit, "unlucky", "gpu-b1", trouble="once")
    expect(visit.page.get_by_role("alert")).to_be_visible()
    seen["failure"] = visit.page.url
    correlation = visit.page.get_by_role("link").filter(has_text="cor-").first.get_attribute("href")
    return seen | {
        "triage": f"{stage.url}{correlation}",
        "triage-search": f"{stage.url}/triage",
    }


def _people(stage: Scene) -> dict[str, str]:
    """An invitation, a sign-in provider, a delegation; the page of one person."""
    boss, tenant_id = stage.demo.boss, stage.demo.tenant_id
    boss.invite(tenant_id, email="rob@demo.example", name="Rob", role="project_viewer", project_id=stage.research)
    directory: dict[str, Any] = {
        "name": "Demo directory",
        "issuer": "https://login.demo.example",
        "client_id": "gpuaas",
    }
    boss.create_identity_provider(tenant_id, **directory, email_domains=["demo.example"], default_role="project_viewer")
    program = boss.list_service_accounts(stage.demo.projects["training"]).items[0]
    keys, reason = ["apps.instance.read", "capacity.allocation.read"], "It looks after both projects."
    boss.create_delegation(stage.research, grantee_id=program.id, permissions=keys, reason=reason, expires_in_s=86_400)
    sam = next(one for one in boss.list_users(tenant_id).items if one.name.startswith("Sam"))
    return {"person": f"{stage.url}/tenants/{tenant_id}/users/{sam.id}"}


def _of_instance(visit: Visit) -> dict[str, str]:
    """The page of the instance, its tabs, and the page of one of its members."""
    here = visit.page.url
    instance = visit.scene.demo.boss.get_instance(visit.scene.research, here.rpartition("/")[2])
    tabs = {f"instance-{tab}": f"{here}?tab={tab}" for tab in ("access", "settings", "history")}
    return {"instance": here, "member": f"{here}/members/{instance.members[-1].id}"} | tabs


def _take(visit: Visit, made: Scene, addresses: dict[str, str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"invitation": f"{made.url}/invitation#inv-1.token", "sign-in": f"{made.url}/sign-in"}
    pages |= {_name(rest): made.page(rest) for rest in OF_PROJECT}
    tenant = f"{made.url}/tenants/{made.demo.tenant_id}"
    pages |= {"tenant-" + _name(rest): f"{tenant}/{rest}" for rest in OF_TENANT} | addresses
    for name, address in pages.items():
        visit.page.goto(address)
        if name == "sign-in":
            expect(visit.page.get_by_role("heading", name="Sign in to GPUaaS")).to_be_visible()
        else:
            expect(visit.page.locator("[aria-busy=true]")).to_have_count(0)
        if name == "instance":
            expect(visit.page.locator("[data-topology]").get_by_text("gpu-a1")).to_be_visible()
        visit.page.wait_for_timeout(600)
        visit.page.screenshot(path=folder / f"{name}.png")
        if name == "sign-in":
            visit.sign_in("dana")


def _take_platform(visit: Visit, made: Scene, folder: Path) -> None:
    """What only those see who run the platform."""
    visit.sign_in("admin")
    for rest, heading in OF_PLATFORM.items():
        visit.page.goto(f"{made.url}/{rest}")
        visit.at(heading)
        visit.page.wait_for_timeout(600)
        visit.page.screenshot(path=folder / f"platform-{rest}.png")


def _name(rest: str) -> str:
    return re.sub(r"\W+", "-", rest)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
