"""The main job in a browser, on real hosts: a Slurm cluster, deployed by somebody who only looks and clicks."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from gpuaas_lab.stack.credentials import BOSS
from ground import Ground
from pages import Visit, expect, visiting
from playwright.sync_api import Browser

pytestmark = pytest.mark.lab
WELL = re.compile("a job ran|1 of 1 worker takes jobs")  # said by the deploy, then by each look after it


@dataclass
class Real:
    """The lab's platform, as the pages' helper wants to see it."""

    ground: Ground

    @property
    def url(self) -> str:
        return self.ground.stack.api

    def page(self, rest: str) -> str:
        return f"{self.url}/projects/{self.ground.research}/{rest}"

    def person(self, name: str) -> tuple[str, str]:
        return BOSS, self.ground.stack.credentials.tenant_admin_password


def test_a_slurm_cluster_is_deployed_used_and_torn_down_by_clicking(browser: Browser, ground: Ground) -> None:
    allocations: Any = ground.demo.boss.list_allocations(ground.research, limit=200).items
    machine = next(one for one in allocations if one.state == "active" and one.in_use_by is None)
    with visiting(browser, Real(ground), viewport={"width": 1440, "height": 900}) as visit:  # type: ignore[arg-type]
        visit.sign_in("dana")
        _deploy(visit, "clicked", machine.name)
        page = visit.page
        expect(page.get_by_text("Done.", exact=True)).to_be_visible(timeout=180_000)
        for step in ("Starting the scheduler", "Running the first job"):
            expect(page.locator("[data-steps]").get_by_text(step).first).to_be_visible()
        page.get_by_role("link", name="clicked").first.click()
        visit.at("clicked")
        expect(page.locator("[data-health=healthy]")).to_contain_text(WELL)
        visit.check()
        page.get_by_role("tab", name="Access").click()
        expect(page.get_by_text("srun").first).to_be_visible()
        visit.check()
        page.get_by_role("button", name="More").or_(page.get_by_role("button", name="Actions", exact=True)).click()
        page.get_by_role("menuitem", name="Decommission").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Type clicked to confirm").fill("clicked")
        dialog.get_by_role("button", name="Decommission").click()
        expect(page.get_by_text("with evidence for each")).to_be_visible(timeout=180_000)
        visit.quiet()


def _deploy(visit: Visit, name: str, machine: str) -> None:
    page = visit.page
    visit.go("deploy/slurm", "Deploy Slurm")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("group", name="Controller and Worker").get_by_text(machine, exact=True).click()
    page.get_by_role("button", name="Check the plan").click()
    expect(page.locator("[data-plan]")).to_contain_text(machine)
    page.get_by_role("button", name="Deploy", exact=True).click()
    visit.at(f"Deploy {name}")
