"""Trouble in a browser, on a real host: a deployment that fails says why and what to do, its evidence and its timeline are one
click away, and the retry that succeeds is followed to its end although the connection is lost on the way."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.support.lab_pages import (
    LISTEN,
    SLOW_MS,
    cleared,
    look,
    looking,
    operation_of,
    steps_agree,
    steps_shown,
    steps_told,
    succeeded,
)
from tests.browser.support.pages import Visit, expect
from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(13)]

NAME, HOST = "unlucky", "gpu6"


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("failpoints")


@pytest.fixture(scope="module")
def dana(browser: Browser, ground: Ground, points: Path) -> Iterator[Visit]:
    ground.controller_restarted_with({"GPUAAS_FAILPOINT_DIR": str(points)})
    try:
        with looking(browser, ground) as visit:
            yield visit
    finally:
        for held in points.iterdir():
            held.unlink()
        cleared(ground, NAME)
        ground.controller_restarted_with({})


@pytest.fixture(scope="module")
def mend(ground: Ground) -> Iterator[Callable[[], str]]:
    """A program that the first GPU job needs is away until this is called."""
    ground.on_host(HOST, "mv", "/usr/bin/printenv", "/usr/bin/printenv.off")
    back = "[ -e /usr/bin/printenv ] || mv /usr/bin/printenv.off /usr/bin/printenv"
    yield lambda: ground.on_host(HOST, "bash", "-c", back)
    ground.on_host(HOST, "bash", "-c", back)


def test_a_failed_deployment_says_why_with_its_evidence_and_its_timeline(
    dana: Visit, ground: Ground, mend: Callable[[], str]
) -> None:
    page = dana.page
    dana.go("deploy/slurm", "Deploy Slurm")
    page.get_by_label("Name", exact=True).fill(NAME)
    page.get_by_role("group", name="Controller and Worker").get_by_text(HOST, exact=True).click()
    page.get_by_role("button", name="Check plan").click()
    page.get_by_role("button", name="Deploy", exact=True).click()
    dana.at(f"Deploy {NAME}")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("What to do:", timeout=SLOW_MS)
    expect(alert).to_contain_text("job_proof_failed")
    expect(page.locator("[data-steps]").get_by_role("img", name="failed here")).to_be_visible()
    evidence = page.locator("[data-evidence]")
    expect(evidence).to_contain_text(HOST)
    expect(evidence).to_contain_text("printenv")
    look(dana, "g1-failed")
    page.get_by_role("link", name=NAME).first.click()
    dana.at(NAME)
    look(dana, "g2-failed-instance")
    page.go_back()
    page.get_by_role("alert").get_by_role("link", name=re.compile("^cor-")).click()
    dana.at("Triage")
    expect(page.get_by_text("Timeline")).to_be_visible()
    look(dana, "g3-triage")
    page.go_back()
    dana.at(f"Deploy {NAME}")


def test_the_retry_succeeds_and_its_page_goes_on_after_a_lost_connection(
    dana: Visit, ground: Ground, mend: Callable[[], str], points: Path
) -> None:
    page, held = dana.page, points / "gpu_job.before_act"
    dana.allowed.append("ERR_INTERNET_DISCONNECTED")  # the browser itself says so
    mend()
    held.write_text("stay")
    failed = operation_of(page.url)
    page.get_by_role("button", name="Retry").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Retry even after repeated failures").check()
    look(dana, "g4-ask-retry")
    dialog.get_by_role("button", name="Retry").click()
    page.wait_for_url(lambda url: operation_of(url) not in ("", failed))
    retry = operation_of(page.url)
    assert ground.operation(retry).params["try_anyway"]
    dana.at(f"Deploy {NAME}")
    page.evaluate(LISTEN)
    wait_until(lambda: held.read_text() == "here", 120, "the retry to come to the step that failed")
    expect(page.locator("[data-steps]").get_by_text("Running a job on a GPU")).to_be_visible()
    page.context.set_offline(True)
    expect(page.locator("[data-live=Reconnecting]")).to_be_visible()
    expect(page.get_by_text("Connection lost. The operation continues")).to_be_visible()
    look(dana, "g5-lost")
    before = steps_shown(dana)
    held.unlink()
    wait_until(lambda: len(steps_told(ground, retry)) > len(before), 120, "the work to go on meanwhile")
    page.context.set_offline(False)
    expect(page.locator("[data-live=Live]")).to_be_visible()
    succeeded(dana)
    assert page.evaluate("window.heard.length") >= 1, "the page was reloaded"
    steps_agree(dana, ground, retry)
    look(dana, "g6-retried")
