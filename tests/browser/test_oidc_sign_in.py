"""Signing in through an organisation's provider, with clicks: a real one, which knows more people than we let in."""

from collections.abc import Iterator

import pytest

from core.tests.support.oidc_issuers import real_provider
from tests.browser.support.browser_stack import Scene
from tests.browser.support.pages import Visit, expect

LOGIN = "kim@demo.example"
PROVIDERS = ["/interaction/"]  # its own pages ask for a font from far away


@pytest.fixture(scope="module")
def provider(stage: Scene) -> Iterator[str]:
    """The name of the way in; Kim was invited, others were not."""
    boss, tenant_id = stage.demo.boss, stage.demo.tenant_id
    with real_provider(f"{stage.url}/v1/auth/oidc/callback") as issuer:
        made = boss.create_identity_provider(tenant_id, name="Demo directory", issuer=issuer, client_id="public")
        boss.invite(tenant_id, email=LOGIN, name="Kim", role="project_viewer", project_id=stage.research)
        yield "Demo directory"
        boss.delete_identity_provider(tenant_id, made.id)


def through(visit: Visit, provider: str, login: str) -> None:
    """From the sign-in page through the provider's own pages and back."""
    page = visit.page
    page.goto(f"{visit.scene.url}/sign-in?tenant=demo")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("link", name=f"Continue with {provider}").click()
    page.get_by_placeholder("Enter any login").fill(login)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def test_an_invited_person_arrives_in_the_project(visit: Visit, provider: str) -> None:
    visit.allowed = PROVIDERS
    through(visit, provider, LOGIN)
    visit.at("Instances")
    visit.page.get_by_role("button", name="Signed in as").click()
    expect(visit.page.get_by_text(LOGIN)).to_be_visible()


def test_a_stranger_is_told_why_not_on_the_sign_in_page(visit: Visit, provider: str) -> None:
    visit.allowed = PROVIDERS
    through(visit, provider, "stranger@demo.example")
    alert = visit.page.get_by_role("alert")
    expect(alert).to_contain_text("no invitation")
    expect(alert.get_by_role("button", name="Copy the trace ID")).to_be_visible()
    expect(visit.page.get_by_role("heading", name="Sign in to GPUaaS")).to_be_visible()
    visit.check()
    visit.page.reload()
    expect(visit.page.get_by_role("heading", name="Sign in to GPUaaS")).to_be_visible()
    expect(visit.page.get_by_role("alert")).to_have_count(0)


def test_a_provider_that_is_away_is_said_too(visit: Visit, stage: Scene) -> None:
    boss, tenant_id = stage.demo.boss, stage.demo.tenant_id
    made = boss.create_identity_provider(tenant_id, name="Silent provider", issuer="http://127.0.0.1:9", client_id="x")
    visit.page.goto(f"{stage.url}/sign-in?tenant=demo")
    visit.page.get_by_role("button", name="Continue").click()
    visit.page.get_by_role("link", name="Continue with Silent provider").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("provider")
    boss.delete_identity_provider(tenant_id, made.id)
