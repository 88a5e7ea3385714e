"""The main job in a browser, on real hosts and in order: a Slurm cluster comes, grows, empties, shrinks and goes, by the hands of
a person who only looks and clicks. Each test stands on the one before; whatever happens, the hosts are free afterwards."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator

from tests.browser.support.lab_pages import (
    LISTEN,
    SLOW_MS,
    cleared,
    look,
    looking,
    operation_of,
    steps_agree,
    succeeded,
)
from tests.browser.support.pages import Visit, expect
from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(10)]

NAME, HEAD, FIRST, SECOND, SPARE = "clicked", "gpu1", "gpu2", "gpu4", "gpu5"


@pytest.fixture(scope="module")
def dana(browser: Browser, ground: Ground) -> Iterator[Visit]:
    ground.controller_restarted_with({"GPUAAS_SLURM_OBSERVE_S": "1"})
    try:
        with looking(browser, ground) as visit:
            yield visit
    finally:
        cleared(ground, NAME)
        ground.controller_restarted_with({})


def test_from_the_first_sign_in_to_a_running_cluster(dana: Visit, ground: Ground) -> None:
    page = dana.page
    dana.go("instances", "Instances")
    look(dana, "a1-instances")
    page.get_by_role("link", name="Catalog").first.click()
    dana.at("Catalog")
    look(dana, "a2-catalog")
    page.get_by_role("link", name="Deploy").click()
    dana.at("Deploy Slurm")
    page.get_by_label("Name", exact=True).fill(NAME)
    page.get_by_label("A controller and workers on machines of their own").check()
    choose(page.get_by_role("group", name="Controller", exact=True), HEAD)
    choose(page.get_by_role("group", name="Worker", exact=True), FIRST, SECOND)
    look(dana, "a3-deploy")
    page.get_by_role("button", name="Check plan").click()
    for host in (HEAD, FIRST, SECOND):
        expect(page.locator("[data-plan]")).to_contain_text(host)
    look(dana, "a4-plan")
    page.get_by_role("button", name="Deploy", exact=True).click()
    dana.at(f"Deploy {NAME}")
    page.evaluate(LISTEN)
    succeeded(dana)
    told = steps_agree(dana, ground, operation_of(page.url))
    heard = page.evaluate("window.heard")
    assert len([said for said in heard if said in told]) >= 3, f"steps come as they happen, not at the end: {heard}"
    look(dana, "a6-done")
    page.get_by_role("link", name=NAME).first.click()
    dana.at(NAME)
    expect(page.locator("[data-health=healthy]")).to_contain_text("2 of 2 workers take jobs")
    look(dana, "a7-running")
    page.get_by_role("tab", name="Access").click()
    expect(page.get_by_text("srun").first).to_be_visible()
    look(dana, "a8-access")
    page.get_by_role("tab", name="Settings").click()
    look(dana, "a8-settings")


def choose(group: Locator, *machines: str) -> None:
    for machine in machines:
        group.get_by_text(machine, exact=True).click()


def test_a_worker_is_added_while_the_cluster_runs(dana: Visit, ground: Ground) -> None:
    page = dana.page
    opened(dana)
    page.get_by_role("button", name="Add a worker").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(f"Used by {NAME}").first).to_be_visible()
    dialog.get_by_text(SPARE, exact=True).click()
    expect(dialog.locator("[data-plan]")).to_contain_text(SPARE)
    look(dana, "b1-add")
    dialog.get_by_role("button", name="Add a worker").click()
    succeeded(dana)
    look(dana, "b2-added")
    opened(dana)
    expect(row(dana, SPARE)).to_contain_text("Ready")
    expect(page.locator("[data-health=healthy]")).to_contain_text("3 of 3 workers take jobs")


def test_a_drain_tells_whose_job_holds_the_worker_and_when_it_is_free(dana: Visit, ground: Ground) -> None:
    page = dana.page
    opened(dana)
    job = job_on(ground, SPARE)
    ask(dana, SPARE, "Drain", "b3-ask-drain")
    expect(page.get_by_text(f"Waiting for job {job} of gpuaas").first).to_be_visible()
    look(dana, "b4-draining")
    opened(dana)
    expect(row(dana, SPARE)).to_contain_text("Draining")
    look(dana, "b5-instance-draining")
    row(dana, SPARE).get_by_role("link").click()
    dana.at(f"worker/2 on {SPARE}")
    forecast = page.locator("[data-forecast]")
    for words in ("Free in", job, "gpuaas", "RUNNING"):
        expect(forecast).to_contain_text(words)
    look(dana, "b6-member-draining")
    ground.as_user(HEAD, "scancel", job)
    expect(page.get_by_role("main").get_by_text("Drained", exact=True).first).to_be_visible(timeout=SLOW_MS)
    look(dana, "b7-member-drained")


def test_a_drained_worker_is_given_back_and_removed(dana: Visit, ground: Ground) -> None:
    page = dana.page
    opened(dana)
    expect(row(dana, SPARE)).to_contain_text("Drained")
    ask(dana, SPARE, "Undrain", "b8-ask-undrain")
    succeeded(dana)
    opened(dana)
    expect(row(dana, SPARE)).to_contain_text("Ready")
    ask(dana, SPARE, "Remove", "b9-ask-remove", confirmed=True)
    succeeded(dana)
    expect(page.locator("[data-certificates]")).to_contain_text(f"{SPARE} is clean")
    look(dana, "b9-removed")
    opened(dana)
    expect(row(dana, SPARE)).to_have_count(0)


def test_a_user_without_a_permission_reads_which_role_has_it(browser: Browser, dana: Visit, ground: Ground) -> None:
    with looking(browser, ground, "sam") as sam:
        sam.go("catalog", "Catalog")
        sam.page.get_by_role("button", name="Deploy").click()
        expect(sam.page.get_by_text("You need the Project admin role.")).to_be_visible()
        look(sam, "d1-catalog")
        sam.go("instances", "Instances")
        sam.page.get_by_role("link", name=NAME).click()
        sam.at(NAME)
        sam.page.get_by_role("button", name="Actions", exact=True).click()
        expect(sam.page.get_by_text("You need the Project admin role.")).to_be_visible()
        look(sam, "d2-instance")
        sam.page.keyboard.press("Escape")
        actions_of(sam, FIRST)
        expect(sam.page.get_by_text("You need the Project admin role.").first).to_be_visible()
        look(sam, "d3-member")


def test_a_persons_drain_is_shown_with_who_and_why_and_left_alone(dana: Visit, ground: Ground) -> None:
    opened(dana)
    node = node_of(ground, FIRST)
    ground.on_host(HEAD, "scontrol", "update", f"nodename={node}", "state=drain", "reason=fan is loud")
    health = dana.page.locator("[data-health=degraded]")
    expect(health).to_contain_text("drained by root", timeout=SLOW_MS)
    expect(health).to_contain_text("fan is loud. That is left alone")
    expect(row(dana, FIRST)).to_contain_text("Drained")
    for words in ("Drained by root", node, "To revert", "To keep it"):
        expect(dana.page.locator("[data-drift]")).to_contain_text(words)
    look(dana, "e1-human-drain")
    row(dana, FIRST).get_by_role("link").click()
    dana.at(f"worker/0 on {FIRST}")
    expect(dana.page.get_by_text("fan is loud")).to_be_visible()
    look(dana, "e2-human-drain-member")
    ground.on_host(HEAD, "scontrol", "update", f"nodename={node}", "state=undrain")
    opened(dana)
    expect(dana.page.locator("[data-health=healthy]")).to_be_visible(timeout=SLOW_MS)
    expect(dana.page.locator("[data-drift]")).to_have_count(0)


def test_it_is_torn_down_with_a_certificate_for_each_machine(dana: Visit, ground: Ground) -> None:
    page = dana.page
    opened(dana)
    page.get_by_role("tab", name="History").click()
    look(dana, "f0-history")
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Decommission").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("[data-plan]")).to_contain_text(HEAD)
    dialog.get_by_label(f"Type {NAME} to confirm").fill(NAME)
    look(dana, "f1-ask")
    dialog.get_by_role("button", name="Decommission").click()
    succeeded(dana)
    expect(page.get_by_text("The cleanup of each is verified")).to_be_visible()
    certificates = page.locator("[data-certificates]")
    for host in (HEAD, FIRST, SECOND):
        expect(certificates).to_contain_text(f"{host} is clean")
    expect(certificates.get_by_text("Access revoked.")).to_have_count(3)
    certificates.get_by_text(HEAD, exact=True).click()
    expect(certificates.get_by_text("sha256:").first).to_be_visible()
    look(dana, "f2-gone")
    page.get_by_role("link", name=NAME).first.click()
    dana.at(NAME)
    for host in (HEAD, FIRST, SECOND, SPARE):
        expect(page.locator("[data-certificates]")).to_contain_text(f"{host} is clean")
    look(dana, "f3-gone-instance")


def opened(visit: Visit) -> None:
    """The instance's page, from wherever one is."""
    visit.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Instances").click()
    visit.at("Instances")
    visit.page.get_by_role("link", name=NAME, exact=True).click()
    visit.at(NAME)


def row(visit: Visit, host: str) -> Locator:
    return visit.page.get_by_role("row").filter(has_text=host)


def actions_of(visit: Visit, host: str) -> str:
    """Opens the menu of the member on this host; its name, as the CLI has it."""
    button = row(visit, host).get_by_role("button", name=re.compile("^Actions of "))
    button.click()
    return (button.get_attribute("aria-label") or "").removeprefix("Actions of ")


def ask(visit: Visit, host: str, action: str, shot: str, *, confirmed: bool = False) -> None:
    page = visit.page
    name = actions_of(visit, host)
    page.get_by_role("menuitem", name=action, exact=True).click()
    dialog = page.get_by_role("dialog")
    if confirmed:
        dialog.get_by_label(f"Type {name} to confirm").fill(name)
    look(visit, shot)
    dialog.get_by_role("button", name=action).click()


def node_of(ground: Ground, host: str) -> str:
    """What Slurm calls the worker on this host."""
    instance = next(
        one for one in ground.demo.boss.list_instances(ground.research, limit=200).items if one.name == NAME
    )
    member = next(one for one in ground.instance(instance.id).members if one.node_name == host)
    names = ground.on_host(HEAD, "sinfo", "-h", "-N", "-o", "%N").split()
    return next(name for name in names if name.endswith(member.id[-8:]))


def job_on(ground: Ground, host: str) -> str:
    words = ("--time=30", "--output", "/dev/null", "--wrap", "sleep 600")
    job = ground.as_user(HEAD, "sbatch", "--parsable", "-w", node_of(ground, host), *words).strip()
    state = lambda: ground.on_host(HEAD, "squeue", "-h", "-j", job, "-o", "%T").strip()  # noqa: E731
    wait_until(lambda: state() == "RUNNING", 180, f"job {job} to run on {host}")
    return job
