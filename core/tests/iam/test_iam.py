"""Who may do what, through the API: explanations, a tenant's own roles, deny rules, members."""

from typing import Any

import pytest
from gpuaas_core.authz.permissions import EVERYBODY, PERMISSIONS, ROLES

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import Api, World, add_user, service_account
from core.tests.support.store_rows import rows

DEPLOY = "apps.instance.create"


def _roles(world: World) -> str:
    return f"/v1/tenants/{world.tenant}/roles"


def _denies(world: World) -> str:
    return f"/v1/tenants/{world.tenant}/deny-rules"


async def _bind(world: World, who: str, role: str, project: str | None = None) -> Any:
    body = {"principal_id": who, "role": role, "project_id": project}
    return await world.boss.ok(f"/v1/tenants/{world.tenant}/role-bindings", body)


async def _why(world: World, who: str, permission: str, *, by: Api | None = None, at: str | None = None) -> Any:
    place = at or f"/v1/projects/{world.red}"
    answer = await (by or world.boss).get(f"{place}/explain", params={"permission": permission, "principal_id": who})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_an_explanation_names_the_binding_that_decides(world: World) -> None:
    found = await _why(world, world.boss_id, DEPLOY)
    assert (found["allowed"], found["decided_by"]) == (True, "binding")
    (rule,) = found["matched"]
    assert (rule["kind"], rule["role"], rule["scope_id"]) == ("binding", "tenant_admin", world.tenant)
    assert rows(world.platform, "select 1 from role_bindings where id = :id", id=rule["id"])


async def test_an_explanation_of_a_refusal_says_what_would_help(world: World) -> None:
    found = await _why(world, world.viewer_id, DEPLOY)
    assert (found["allowed"], found["visible"], found["decided_by"]) == (False, True, "default")
    assert found["reason"] == f"no binding here holds {DEPLOY}"
    assert found["roles_that_hold_it"] == ["tenant_admin", "project_admin"]


async def test_an_explanation_agrees_with_what_really_happens(world: World) -> None:
    body = world.deploy_body(world.allocations[0], validate_only=True)
    for who, caller in ((world.viewer_id, world.viewer), (world.boss_id, world.boss), (world.second_id, world.second)):
        allowed = (await _why(world, who, DEPLOY))["allowed"]
        assert (await caller.post(f"/v1/projects/{world.red}/instances", body)).is_success == allowed


async def test_a_service_account_outside_its_project_is_explained_by_containment(world: World) -> None:
    found = await _why(world, world.controller_id, "apps.instance.read", at=f"/v1/projects/{world.blue}")
    assert (found["allowed"], found["visible"], found["decided_by"]) == (False, False, "containment")


async def test_a_disabled_account_may_nothing_and_the_explanation_says_so(world: World) -> None:
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{world.second_id}/disable")
    found = await _why(world, world.second_id, "apps.instance.read")
    assert (found["allowed"], found["decided_by"]) == (False, "disabled")


async def test_everybody_may_explain_themselves_where_they_see_something(world: World) -> None:
    for caller in (world.viewer, world.controller):
        query = {"permission": DEPLOY, "project_id": world.red}
        found = (await caller.get("/v1/whoami/explain", params=query)).json()
        assert (found["allowed"], found["visible"]) == (False, True)
    at_platform = (
        await world.machine.get("/v1/whoami/explain", params={"permission": "platform.tenant.create"})
    ).json()
    assert (at_platform["allowed"], at_platform["scope_kind"]) == (False, "platform")


async def test_explaining_oneself_is_no_way_to_look_around(world: World) -> None:
    answers = []
    for where in ({"project_id": world.blue}, {"project_id": "prj_" + "0" * 26}, {"tenant_id": world.tenant}):
        answer = await world.viewer.get("/v1/whoami/explain", params={"permission": DEPLOY} | where)
        answers.append(check_problem(answer, 404, "not_found")["detail"])
    assert len(set(answers)) == 1


async def test_a_person_of_another_tenant_is_not_explained(world: World) -> None:
    admin = (await world.admin.get("/v1/whoami")).json()["principal"]["id"]
    for who in (admin, "usr_" + "0" * 26):
        query = {"permission": DEPLOY, "principal_id": who}
        answer = await world.boss.get(f"/v1/projects/{world.red}/explain", params=query)
        check_problem(answer, 404, "not_found")
    query = {"permission": "made.up.key", "principal_id": world.viewer_id}
    answer = await world.boss.get(f"/v1/projects/{world.red}/explain", params=query)
    check_problem(answer, 422, "permission_unknown")


# --- a tenant's own roles


async def test_a_tenants_own_role_gives_exactly_its_keys(world: World) -> None:
    keys = ["tenancy.project.read", "apps.instance.read", "apps.operation.cancel"]
    await world.boss.ok(_roles(world), {"name": "night-shift", "permissions": keys})
    night, who = await add_user(world, "night@acme.example", "night-shift", project=world.red)
    for key in PERMISSIONS:
        found = await _why(world, who, key)
        assert found["allowed"] == (key in {*keys, *EVERYBODY}), key
    deployed = await world.deploy()
    assert (await night.post(world.operation(deployed["operation"]["id"], "cancel"))).status_code == 200
    refused = await night.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0]))
    check_problem(refused, 403, "permission_denied")
    assert (await night.get(f"/v1/projects/{world.blue}")).status_code == 404


async def test_a_service_account_may_hold_a_tenants_own_role(world: World) -> None:
    await world.boss.ok(_roles(world), {"name": "reader", "permissions": ["apps.instance.read"]})
    await _bind(world, world.second_id, "reader", world.red)
    listed = (await world.boss.get(f"/v1/projects/{world.red}/service-accounts")).json()["items"]
    assert {a["id"]: a["roles"] for a in listed}[world.second_id] == ["app_operator", "reader"]


async def test_a_role_cannot_hold_keys_its_author_does_not_hold(world: World) -> None:
    for keys in (["platform.tenant.create"], ["apps.instance.read", "catalog.version.publish"]):
        refused = await world.boss.post(_roles(world), {"name": "greedy", "permissions": keys})
        check_problem(refused, 403, "grant_exceeds_own")
    check_problem(
        await world.boss.post(_roles(world), {"name": "odd", "permissions": ["apps.*"]}), 422, "permission_unknown"
    )
    refused = await world.admin.post(_roles(world), {"name": "mine", "permissions": ["apps.instance.read"]})
    check_problem(refused, 403, "permission_denied")
    assert rows(world.platform, "select 1 from custom_roles") == []


async def test_a_tenants_own_role_is_not_bound_beyond_what_the_caller_holds(world: World) -> None:
    await world.boss.ok(_roles(world), {"name": "deployer", "permissions": [DEPLOY]})
    body = {"principal_id": world.viewer_id, "role": "deployer", "project_id": world.red}
    refused = await world.admin.post(f"/v1/tenants/{world.tenant}/role-bindings", body)
    check_problem(refused, 403, "grant_exceeds_own")


async def test_a_role_of_another_tenant_does_not_exist_here(world: World) -> None:
    await world.boss.ok(_roles(world), {"name": "night-shift", "permissions": [DEPLOY]})
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    person = {"email": "x@other.example", "name": "X", "password": "correct horse battery"}
    user = (await world.admin.ok(f"/v1/tenants/{other}/users", person))["id"]
    body = {"principal_id": user, "role": "night-shift"}
    refused = await world.admin.post(f"/v1/tenants/{other}/role-bindings", body)
    check_problem(refused, 422, "role_not_bindable")


async def test_a_role_is_deleted_once_it_is_not_bound(world: World) -> None:
    await world.boss.ok(_roles(world), {"name": "night-shift", "permissions": [DEPLOY]})
    check_problem(
        await world.boss.post(_roles(world), {"name": "night-shift", "permissions": [DEPLOY]}), 409, "role_taken"
    )
    binding = await _bind(world, world.viewer_id, "night-shift", world.red)
    check_problem(await world.boss.post(f"{_roles(world)}/night-shift/delete"), 409, "role_in_use")
    await world.boss.ok(f"/v1/tenants/{world.tenant}/role-bindings/{binding['id']}/remove")
    await world.boss.ok(f"{_roles(world)}/night-shift/delete")
    names = [role["name"] for role in (await world.boss.get(_roles(world))).json()["items"]]
    assert "night-shift" not in names
    assert set(names) == {role for role in ROLES if role not in ("platform_admin", "platform_ops", "node_agent")}
    check_problem(await world.boss.post(f"{_roles(world)}/tenant_admin/delete"), 404, "not_found")


# --- deny rules


async def test_a_deny_rule_goes_before_every_role_and_is_explained(world: World) -> None:
    rule = await world.boss.ok(_denies(world), {"permissions": ["apps.instance.*"], "reason": "audit week"})
    refused = await world.boss.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0]))
    problem = check_problem(refused, 403, "permission_denied")
    assert "gpuaas deny-rule list" in problem["way_out"], "no role would help"
    assert "audit week" in problem["detail"]
    found = await _why(world, world.boss_id, DEPLOY)
    assert (found["allowed"], found["decided_by"]) == (False, "deny")
    assert [(m["kind"], m["id"], m["reason"]) for m in found["matched"]] == [("deny", rule["id"], "audit week")]
    await world.boss.ok(f"{_denies(world)}/{rule['id']}/remove")
    assert (await world.deploy())["operation"]["status"] == "queued"


async def test_a_deny_rule_of_one_project_leaves_the_others_alone(world: World) -> None:
    body = {"permissions": [DEPLOY], "reason": "blue is closing", "project_id": world.blue}
    await world.boss.ok(_denies(world), body)
    assert (await _why(world, world.boss_id, DEPLOY))["allowed"]
    assert not (await _why(world, world.boss_id, DEPLOY, at=f"/v1/projects/{world.blue}"))["allowed"]


async def test_a_deny_rule_of_the_platform_reaches_every_tenant_and_no_tenant_lifts_it(world: World) -> None:
    rule = await world.admin.ok("/v1/deny-rules", {"permissions": ["apps.*"], "reason": "upgrade tonight"})
    assert (await world.controller.get(f"/v1/projects/{world.red}/instances")).status_code == 403
    assert (await world.boss.get(_denies(world))).json()["items"] == []
    check_problem(await world.boss.post(f"{_denies(world)}/{rule['id']}/remove"), 404, "not_found")
    check_problem(await world.boss.post(f"/v1/deny-rules/{rule['id']}/remove"), 403, "permission_denied")
    await world.admin.ok(f"/v1/deny-rules/{rule['id']}/remove")
    assert (await world.controller.get(f"/v1/projects/{world.red}/instances")).status_code == 200


async def test_the_platform_does_not_lift_a_tenants_deny_rule(world: World) -> None:
    rule = await world.boss.ok(_denies(world), {"permissions": [DEPLOY], "reason": "ours"})
    check_problem(await world.admin.post(f"{_denies(world)}/{rule['id']}/remove"), 403, "permission_denied")
    check_problem(await world.admin.post(f"/v1/deny-rules/{rule['id']}/remove"), 404, "not_found")


async def test_a_denied_project_is_not_listed_either(world: World) -> None:
    body = {"permissions": ["tenancy.project.read"], "reason": "hidden", "project_id": world.blue}
    await world.boss.ok(_denies(world), body)
    assert [p["id"] for p in (await world.boss.get("/v1/projects")).json()["items"]] == [world.red]


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("iam.deny.remove", "permission_undeniable"),
        ("identity.self.use", "permission_undeniable"),
        ("apps.instance.fly", "permission_unknown"),
        ("apps", "permission_unknown"),
        ("*.*", "permission_unknown"),
        ("made.up.*", "permission_unknown"),
    ],
)
async def test_a_deny_rule_that_makes_no_sense_is_refused(world: World, pattern: str, code: str) -> None:
    refused = await world.boss.post(_denies(world), {"permissions": ["apps.*", pattern], "reason": "because"})
    check_problem(refused, 422, code)
    assert rows(world.platform, "select 1 from deny_rules") == []


async def test_the_widest_deny_rule_can_still_be_lifted(world: World) -> None:
    areas = sorted({f"{key.split('.')[0]}.*" for key in PERMISSIONS} - {"identity.*"})
    rule = await world.boss.ok(_denies(world), {"permissions": areas, "reason": "everything"})
    assert (await world.boss.get(f"/v1/projects/{world.red}")).status_code == 403
    assert len((await world.boss.get(_denies(world))).json()["items"]) == 1
    await world.boss.ok(f"{_denies(world)}/{rule['id']}/remove")
    assert (await world.boss.get(f"/v1/projects/{world.red}")).status_code == 200


# --- members


async def test_members_are_shown_with_where_their_role_comes_from(world: World) -> None:
    found = (await world.boss.get(f"/v1/projects/{world.red}/members")).json()["items"]
    told = {(m["principal_id"], m["role"], m["scope_kind"]) for m in found}
    assert (world.boss_id, "tenant_admin", "tenant") in told
    assert (world.viewer_id, "project_viewer", "project") in told
    assert (world.controller_id, "app_operator", "project") in told
    blue = (await world.boss.get(f"/v1/projects/{world.blue}/members")).json()["items"]
    assert world.viewer_id not in {m["principal_id"] for m in blue}


async def test_a_removed_role_is_lost_on_the_next_request(world: World) -> None:
    members = (await world.boss.get(f"/v1/projects/{world.red}/members")).json()["items"]
    (mine,) = [m["binding_id"] for m in members if m["principal_id"] == world.viewer_id]
    path = f"/v1/tenants/{world.tenant}/role-bindings/{mine}/remove"
    removed = await world.boss.ok(path)
    assert removed["role"] == "project_viewer"
    assert (await world.viewer.get(f"/v1/projects/{world.red}")).status_code == 404
    check_problem(await world.boss.post(path), 404, "not_found")


async def test_a_machines_own_role_is_not_taken_away(world: World) -> None:
    (binding,) = rows(world.platform, "select id from role_bindings where scope_id = :n", n=world.nodes[0])
    path = f"/v1/tenants/{world.tenant}/role-bindings/{binding['id']}/remove"
    check_problem(await world.boss.post(path), 404, "not_found")


async def test_a_deleted_account_gets_no_role(world: World) -> None:
    account, _, _ = await service_account(world, world.red)
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{account}/delete")
    body = {"principal_id": account, "role": "app_operator", "project_id": world.red}
    check_problem(await world.boss.post(f"/v1/tenants/{world.tenant}/role-bindings", body), 404, "not_found")
