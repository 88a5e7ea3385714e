"""Who makes an account an operator of a project, which is root on its machines: no chain of rights of a project admin."""

from typing import Any

import pytest
from joserfc.jwk import OKPKey
from sqlalchemy import text

from core.tests.http.test_bad_input import check_problem
from core.tests.instances.test_observations import enter, look
from core.tests.support.fixtures import PASSWORD, Api, World, add_user, machine_token, service_account
from core.tests.support.store_rows import rows

NEEDED = "operator_appointment_needed"
ROOT_KEYS = ["apps.operation.work", "apps.access.grant"]


def _new_key() -> dict[str, Any]:
    return {"public_jwk": OKPKey.generate_key("Ed25519").as_dict(private=False)}


async def _paul(world: World) -> Api:
    return (await add_user(world, "paul@acme.example", "project_admin", project=world.red))[0]


async def _own_role(world: World, name: str, permissions: list[str]) -> None:
    await world.boss.ok(f"/v1/tenants/{world.tenant}/roles", {"name": name, "permissions": permissions})


async def _holder(world: World, name: str, permissions: list[str], *, project: str | None = None) -> tuple[Api, str]:
    """A person with a role of the tenant's own, in the whole tenant if no project is named."""
    await _own_role(world, name, permissions)
    return await add_user(world, f"{name}@acme.example", name, project=project)


def _accounts(world: World, *more: str) -> str:
    return "/".join((f"/v1/projects/{world.red}/service-accounts", *more))


async def test_a_project_admin_creates_no_operator(world: World) -> None:
    paul = await _paul(world)
    for roles in (["app_operator"], ["project_viewer", "app_operator"]):
        refused = await paul.post(_accounts(world), {"name": "pauls-x", "roles": roles} | _new_key())
        problem = check_problem(refused, 403, NEEDED)
        assert "iam.operator.appoint" in problem["detail"]
    check_problem(await paul.post(_accounts(world), {"name": "default-role"} | _new_key()), 403, NEEDED)
    assert (await paul.post(_accounts(world), {"name": "reads", "roles": ["project_viewer"]} | _new_key())).is_success
    made = await world.boss.ok(_accounts(world), {"name": "operator", "roles": ["app_operator"]} | _new_key())
    assert made["roles"] == ["app_operator"]


async def test_a_refused_appointment_is_in_the_audit_trail(world: World) -> None:
    paul = await _paul(world)
    asked = {"name": "pauls-x", "roles": ["app_operator"]} | _new_key()
    refused = check_problem(await paul.post(_accounts(world), asked), 403, NEEDED)
    query = "select outcome, permission from audit where correlation_id = :c"
    assert rows(world.platform, query, c=refused["correlation_id"]) == [
        {"outcome": "denied", "permission": "iam.service_account.create"}
    ]


async def test_a_project_admin_gives_no_key_to_an_operator_that_exists(world: World) -> None:
    paul = await _paul(world)
    check_problem(await paul.post(_accounts(world, world.controller_id, "keys"), _new_key()), 403, NEEDED)
    reads = await paul.ok(_accounts(world), {"name": "reads", "roles": ["project_viewer"]} | _new_key())
    assert (await paul.post(_accounts(world, reads["id"], "keys"), _new_key())).is_success
    assert (await world.boss.post(_accounts(world, world.controller_id, "keys"), _new_key())).is_success


async def test_a_project_admin_switches_an_operator_off_and_not_on_again(world: World) -> None:
    paul = await _paul(world)
    await paul.ok(_accounts(world, world.second_id, "disable"))
    check_problem(await paul.post(_accounts(world, world.second_id, "enable")), 403, NEEDED)
    await world.boss.ok(_accounts(world, world.second_id, "enable"))


async def test_a_project_admin_adds_no_key_to_an_account_that_is_lent_an_operators_rights(world: World) -> None:
    """The account lives in a project of which Paul is admin, and operates apps of another one."""
    reads = {"name": "reads", "roles": ["project_viewer"]} | _new_key()
    account = (await world.boss.ok(_accounts(world), reads))["id"]
    lent = {"grantee_id": account, "permissions": ROOT_KEYS, "reason": "shared controller", "expires_in_s": 3600}
    made = await world.boss.ok(f"/v1/projects/{world.blue}/delegations", lent)
    paul = await _paul(world)
    problem = check_problem(await paul.post(_accounts(world, account, "keys"), _new_key()), 403, NEEDED)
    assert world.blue not in str(problem), "which project lends it something is not Paul's to know"
    await world.boss.ok(f"/v1/projects/{world.blue}/delegations/{made['id']}/revoke")
    assert (await paul.post(_accounts(world, account, "keys"), _new_key())).is_success


async def test_appointing_in_one_project_gives_no_key_of_an_operator_of_another(world: World) -> None:
    keys = ["tenancy.project.read", "iam.service_account.rotate", "iam.operator.appoint"]
    ann, _ = await _holder(world, "appointer", keys, project=world.red)
    assert (await ann.post(_accounts(world, world.controller_id, "keys"), _new_key())).is_success
    lent = {"grantee_id": world.controller_id, "permissions": ROOT_KEYS, "reason": "also blue", "expires_in_s": 3600}
    await world.boss.ok(f"/v1/projects/{world.blue}/delegations", lent)
    check_problem(await ann.post(_accounts(world, world.controller_id, "keys"), _new_key()), 403, NEEDED)


async def test_a_role_of_the_tenants_own_with_an_operators_keys_needs_the_same_right(world: World) -> None:
    await _own_role(world, "runner", ["tenancy.project.read", *ROOT_KEYS])
    paul = await _paul(world)
    asked = {"name": "pauls-x", "roles": ["runner"]} | _new_key()
    check_problem(await paul.post(_accounts(world), asked), 403, NEEDED)
    keys = ["tenancy.project.read", "iam.service_account.create", *ROOT_KEYS]
    ruth, _ = await _holder(world, "worker", keys, project=world.red)
    check_problem(await ruth.post(_accounts(world), asked), 403, NEEDED)
    assert (await world.boss.post(_accounts(world), asked)).is_success


async def test_binding_an_operator_role_needs_the_right_to_appoint_operators_too(world: World) -> None:
    """A role of the tenant's own that binds roles, held together with all keys of an operator."""
    keys = ["tenancy.tenant.read", "tenancy.project.read", "iam.binding.create", "tenancy.user.create"]
    operator = (await world.boss.get(f"/v1/tenants/{world.tenant}/roles")).json()["items"]
    (held,) = [role["permissions"] for role in operator if role["name"] == "app_operator"]
    rita, rita_id = await _holder(world, "binder", sorted({*keys, *held}))
    bound = {"principal_id": rita_id, "role": "app_operator", "project_id": world.red}
    check_problem(await rita.post(f"/v1/tenants/{world.tenant}/role-bindings", bound), 403, NEEDED)
    invited = {"email": "friend@acme.example", "name": "Friend", "role": "app_operator", "project_id": world.red}
    check_problem(await rita.post(f"/v1/tenants/{world.tenant}/invitations", invited), 403, NEEDED)
    assert (await world.boss.post(f"/v1/tenants/{world.tenant}/role-bindings", bound)).is_success


async def test_an_invitation_to_operate_is_worth_nothing_once_its_author_appoints_no_more(world: World) -> None:
    ben, ben_id = await add_user(world, "ben@acme.example", "tenant_admin", by=world.admin)
    asked = {"email": "friend@acme.example", "name": "Friend", "role": "app_operator", "project_id": world.red}
    token = (await ben.ok(f"/v1/tenants/{world.tenant}/invitations", asked))["token"]
    demote = text("update role_bindings set role = 'project_admin' where principal_id = :who")
    world.platform.db.write_now(lambda tx: tx.execute(demote, {"who": ben_id}))
    accepted = await world.api.as_(None).post("/v1/invitations/accept", {"token": token, "password": PASSWORD})
    assert accepted.json()["code"] == "invitation_invalid", accepted.text


async def test_lending_an_operators_rights_is_appointing_one(world: World) -> None:
    paul = await _paul(world)
    delegations = f"/v1/projects/{world.red}/delegations"
    reads = {"name": "reads", "roles": ["project_viewer"]} | _new_key()
    account = (await paul.ok(_accounts(world), reads))["id"]
    lent = {"grantee_id": account, "permissions": ["apps.access.grant"], "reason": "try", "expires_in_s": 3600}
    assert (await paul.post(delegations, lent)).status_code == 403
    keys = ["tenancy.project.read", "iam.delegation.create", "apps.access.grant"]
    dora, _ = await _holder(world, "lender", keys, project=world.red)
    check_problem(await dora.post(delegations, lent), 403, NEEDED)
    check_problem(
        await paul.post(delegations, lent | {"permissions": ["iam.operator.appoint"]}), 422, "permission_not_lendable"
    )


async def test_what_was_lent_ends_when_its_lender_appoints_no_more(world: World) -> None:
    keys = ["tenancy.project.read", "iam.delegation.create", "iam.operator.appoint", *ROOT_KEYS]
    dora, dora_id = await _holder(world, "lender", keys, project=world.red)
    key = OKPKey.generate_key("Ed25519")
    body = {"name": "reads", "roles": ["project_viewer"], "public_jwk": key.as_dict(private=False)}
    account = (await world.boss.ok(_accounts(world), body))["id"]
    robot = await machine_token(world.api, key, account, world.now())
    lent = {"grantee_id": account, "permissions": ROOT_KEYS, "reason": "night shift", "expires_in_s": 3600}
    await dora.ok(f"/v1/projects/{world.red}/delegations", lent)
    await world.claim(by=robot)
    deny = {"permissions": ["iam.operator.appoint"], "reason": "no more operators"}
    rule = await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules", deny)
    await world.claim(by=robot)  # a deny rule is for acts to come; a loan lasts as long as its lender's role
    await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules/{rule['id']}/remove")
    await _own_role(world, "worker", ["tenancy.project.read", "iam.delegation.create", *ROOT_KEYS])
    demote = text("update role_bindings set role = 'worker' where principal_id = :who")
    world.platform.db.write_now(lambda tx: tx.execute(demote, {"who": dora_id}))
    claimed = await robot.post(f"/v1/projects/{world.red}/operations/claim", {"app_slug": "echo", "holder": "x"})
    check_problem(claimed, 403, "permission_denied")


async def test_break_glass_makes_no_operator(world: World) -> None:
    body = {"tenant_id": world.tenant, "mode": "operate", "reason": "incident", "ticket": "I-1", "minutes": 30}
    made = await world.admin.ok("/v1/platform/break-glass", body)
    other, other_id = await add_user(world, "second@acme.example", None)
    bind = text(
        "insert into role_bindings (id, principal_id, role, scope_kind, scope_id, created_at)"
        " values ('bind_second', :who, 'platform_admin', 'platform', '*', 1)"
    )
    world.platform.db.write_now(lambda tx: tx.execute(bind, {"who": other_id}))
    await other.ok(f"/v1/platform/break-glass/{made['id']}/approve")
    await world.boss.ok(_accounts(world, world.second_id, "disable"))
    check_problem(await world.admin.post(_accounts(world, world.second_id, "enable")), 403, NEEDED)
    assert (await world.admin.post(_accounts(world, world.controller_id, "keys"), _new_key())).status_code == 403
    assert (await world.admin.post(_accounts(world), {"name": "x"} | _new_key())).status_code == 403


@pytest.mark.parametrize("way", ["role-bindings", "invitations"])
async def test_a_project_admin_neither_binds_nor_invites(world: World, way: str) -> None:
    paul = await _paul(world)
    asked = {"role": "app_operator", "project_id": world.red}
    who = {"email": "friend@acme.example", "name": "Friend"} if way == "invitations" else {"principal_id": "usr_x"}
    assert (await paul.post(f"/v1/tenants/{world.tenant}/{way}", asked | who)).status_code in (403, 404)


# --- an observation goes to an account that serves the instance


async def test_an_operator_that_never_worked_for_the_app_observes_nothing_of_it(world: World) -> None:
    instance = await world.running()
    for asked in (
        look(world, instance, by=world.second),
        enter(world, instance, world.allocations[0], by=world.second),
    ):
        refused = check_problem(await asked, 403, "observer_not_controller")
        assert "echo" in refused["detail"]
    assert (await look(world, instance)).status_code == 200


async def test_an_operator_that_worked_for_the_app_in_the_project_serves_its_instances(world: World) -> None:
    instance = await world.running()
    await world.deploy(world.allocations[1], "other")
    assert await world.claim(by=world.second)
    assert (await look(world, instance, by=world.second)).status_code == 200


@pytest.mark.parametrize("gone", ["disable", "delete"])
async def test_once_no_account_that_worked_for_the_app_is_left_another_operator_serves_it(
    world: World, gone: str
) -> None:
    instance = await world.running()
    await world.boss.ok(_accounts(world, world.controller_id, gone))
    assert (await look(world, instance, by=world.second)).status_code == 200


async def test_an_account_that_lost_its_role_leaves_the_instance_to_another_operator(world: World) -> None:
    instance = await world.running()
    forget = text("delete from role_bindings where principal_id = :who")
    world.platform.db.write_now(lambda tx: tx.execute(forget, {"who": world.controller_id}))
    assert (await look(world, instance, by=world.second)).status_code == 200


async def test_a_person_who_claimed_by_hand_stands_in_no_operators_way(world: World) -> None:
    await world.deploy()
    claim = await world.claim(by=world.boss)
    body = {"claim_epoch": claim["claim_epoch"]}
    body |= {"members": [{"member_id": m["id"], "state": "ready"} for m in claim["instance"]["members"]]}
    await world.boss.ok(world.operation(claim["operation"]["id"], "complete"), body)
    instance = await world.instance(claim["instance"]["id"])
    assert (await look(world, instance)).status_code == 200


async def test_an_account_of_another_app_is_no_observer(world: World) -> None:
    """Two apps in one project, each with an operator of its own."""
    instance = await world.running()
    other, robot, _ = await service_account(world, world.red)
    relabel = text("update operations set app_slug = 'other', claimant_id = :who where lock_key <> :one")
    await world.running(world.allocations[1], "second")
    values = {"who": other, "one": instance["id"]}
    world.platform.db.write_now(lambda tx: tx.execute(relabel, values))
    check_problem(await enter(world, instance, world.allocations[0], by=robot), 403, "observer_not_controller")
