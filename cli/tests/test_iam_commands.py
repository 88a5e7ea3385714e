"""Commands about who may do what: what they say, and what they keep."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from gpuaas_sdk import models as m

from cli.tests.support.cli_stack import PROJECT, TENANT, Gpuaas, Scene
from sdk.tests.support.fake_platform import wire


@pytest.mark.usefixtures("scene")
def test_an_explanation_is_a_sentence_and_the_rule(gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpuaas("iam", "explain", "apps.instance.create") == 0
    assert (
        capsys.readouterr().out
        == """\
Ada may apps.instance.create: role project_admin at project prj_1.

DECIDED BY  RULE           SCOPE          ID
binding     project_admin  project prj_1  bind_1
"""
    )


def test_rotating_writes_the_new_key_for_its_owner_only(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, home: Path
) -> None:
    identity = home / "identity.json"
    assert gpuaas("service-account", "rotate", "robot", "--identity", str(identity)) == 0
    kept = json.loads(identity.read_text())
    assert (kept["id"], kept["key_id"], kept["project_id"]) == ("sa_1", "key_2", "prj_1")
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600
    (sent,) = [c.body for c in scene.platform.calls if c.path.endswith("/keys") and c.method == "POST"]
    assert "d" not in sent["public_jwk"], "the private key stays here"
    printed = capsys.readouterr().out
    assert "gpuaas service-account retire-key robot key_1" in printed
    assert kept["private_jwk"]["d"] not in printed


def test_a_password_comes_from_standard_input_and_is_not_shown(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("the old password\nthe new password\n"))
    assert gpuaas("password", "--password-stdin") == 0
    sent = scene.platform.calls[-1].body
    assert sent == {"current_password": "the old password", "new_password": "the new password"}
    assert capsys.readouterr().out == "Your password is changed. Other sessions ended: 2.\n"


def test_an_invitation_is_taken_up_without_being_signed_in(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GPUAAS_TOKEN")
    monkeypatch.setattr("sys.stdin", io.StringIO("inv_1.abc\na long password\n"))
    assert gpuaas("accept", "--from-stdin") == 0
    assert scene.platform.calls[-1].body == {"token": "inv_1.abc", "password": "a long password"}
    assert "gpuaas login" in capsys.readouterr().out


def test_a_platform_administrator_names_a_tenant_they_do_not_belong_to(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    me = {**scene._me(), "tenants": [], "projects": []}
    user = wire(m.PrincipalView, id="usr_2", kind="user", name="Zoe", email="zoe@acme.example")
    scene.platform.on("GET", "/v1/whoami", lambda _: (200, me))
    scene.platform.on("GET", "/v1/tenants", lambda _: (200, {"items": [TENANT], "next_cursor": None}))
    scene.platform.on("GET", "/v1/tenants/ten_1/users", lambda _: (200, {"items": [user], "next_cursor": None}))
    assert gpuaas("iam", "bind", "zoe@acme.example", "tenant_admin", "--tenant", "acme") == 0
    assert scene.platform.calls[-1].body == {"principal_id": "usr_2", "role": "tenant_admin"}
    assert gpuaas("user", "list", "--tenant", "acne") == 5
    assert "gpuaas tenant list" in capsys.readouterr().err


def test_whoami_says_where_the_other_projects_are_if_there_are_more_than_it_shows(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.platform.on("GET", "/v1/whoami", lambda _: (200, {**scene._me(), "more_projects": True}))
    assert gpuaas("whoami") == 0
    assert "gpuaas project list" in capsys.readouterr().out


def test_a_project_is_found_by_name_on_a_later_page_and_an_error_names_a_few_of_many(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [{**PROJECT, "id": f"prj_{n}", "slug": f"team-{n:03d}"} for n in range(300)]

    def page(asked: Any) -> Any:
        start = int(asked.query.get("cursor", "0"))
        following = str(start + 200) if start + 200 < len(many) else None
        return 200, {"items": many[start : start + 200], "next_cursor": following}

    scene.platform.on("GET", "/v1/projects", page)
    scene.platform.on("GET", "/v1/projects/prj_299/allocations", lambda _: (200, {"items": [], "next_cursor": None}))
    assert gpuaas("allocation", "list", "--project", "team-299") == 0
    monkeypatch.delenv("GPUAAS_PROJECT", raising=False)
    capsys.readouterr()
    assert gpuaas("allocation", "list") == 2
    printed = capsys.readouterr().err
    assert "team-019 and 280 more (gpuaas project list)" in printed
