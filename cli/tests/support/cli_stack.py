"""A platform with something to look at, for the tests of the CLI: one project, one machine, one app, one instance."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gpuaas_sdk import models as m

from cli.tests.support.departure_certificate import departure
from sdk.tests.support.fake_platform import Call, Platform, Stream, wire

Gpuaas = Callable[..., int]  # runs a command; its exit code
PROJECT = wire(m.ProjectView, id="prj_1", slug="red", name="Red team", tenant_id="ten_1")
TENANT = wire(m.TenantView, id="ten_1", slug="acme", name="Acme")
FACTS = {"cpus": 8, "memory_mb": 32768, "gpus": [{"path": "/dev/nvidia0", "model": "A100"}] * 2}
LONG_AGO = "2020-01-01T00:00:00.000Z"
CHANGE = {"field": "/a", "old": None, "new": 1, "effect": "pushed", "sentence": "Applied while jobs run."}
MANIFEST = {
    "components": [{"key": "controller", "title": "Controller"}, {"key": "worker", "title": "Worker"}],
    "topologies": [
        {
            "key": "single_node",
            "components": {
                "controller": {"min": 1, "max": 1, "shares_with": None},
                "worker": {"min": 1, "max": 1, "shares_with": "controller"},
            },
        },
        {
            "key": "multi_node",
            "components": {"controller": {"min": 1, "max": 1}, "worker": {"min": 1, "max": 64}},
        },
    ],
}


class Scene:
    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.allocation = wire(
            m.AllocationView,
            id="alloc_1",
            name="big",
            node_name="node-a",
            state="active",
            facts=FACTS,
            created_at=LONG_AGO,
        )
        member = wire(
            m.MemberView, id="mem_1", component_key="controller", state="ready", node_name="node-a", address="10.0.0.9"
        )
        self.instance = wire(
            m.InstanceView,
            id="inst_1",
            name="train",
            project_id="prj_1",
            app_slug="slurm",
            version="1.0.0",
            topology="single_node",
            state="running",
            health={"status": "healthy", "sentence": "One node is idle."},
            access={"login": {"host": "10.0.0.9"}, "commands": ["sinfo", "srun hostname"]},
            members=[member],
            last_operation_id="op_1",
            correlation_id="cor-of-train",
            created_at=LONG_AGO,
            updated_at=LONG_AGO,
        )
        self.operation = self.make_operation(status="succeeded")
        self.certificates: list[dict[str, Any]] = [departure()]
        self.steps: list[dict[str, Any]] = []
        self.cuts: list[int] = []
        self.verdict = wire(m.AuditVerdict, ok=True, sentence="7 rows are as they were written.", rows=7)
        self._routes()

    def make_operation(self, **more: Any) -> dict[str, Any]:
        facts = {
            "id": "op_1",
            "kind": "deploy",
            "instance_id": "inst_1",
            "correlation_id": "cor-of-op",
            "created_at": LONG_AGO,
        }
        return wire(m.OperationView, **{**facts, "target": {"app_slug": "slurm", "version": "1.0.0"}, **more})

    def plays(
        self, *messages: str, ends: str = "succeeded", error: dict[str, Any] | None = None, says: str = ""
    ) -> None:
        """The operation is under way; its events are these steps and then its end, with what it says of it."""
        self.operation = self.make_operation(status="running")
        facts = [
            {"status": "running", "step": number, "of": len(messages), "message": message, "type": "progressed"}
            for number, message in enumerate(messages, 1)
        ]
        last = {"status": ends, "step": len(messages), "of": len(messages), "message": "", "type": ends}
        self.steps = [*facts, last]
        self._end = {
            "status": ends,
            "error": error,
            "progress": {"step": 2, "of": len(messages), "message": says, "percent": 0},
        }

    def stream(self, call: Call) -> Any:
        after = int(call.headers.get("last-event-id", "0"))
        events = [self._event(n, s) for n, s in enumerate(self.steps, 1) if n > after]
        whole = "".join(f"id: {e['sequence']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
        if not self.cuts:
            self.operation = {**self.operation, **self._end}
        return 200, Stream(whole[: self.cuts.pop(0)] if self.cuts else whole)

    def _event(self, sequence: int, facts: dict[str, Any]) -> dict[str, Any]:
        data = {**facts, "operation_id": "op_1", "instance_name": "train"}
        kind = f"apps.operation.{facts['type']}"
        time = f"2026-11-15T00:00:{sequence:02d}.000Z"
        return wire(m.EventView, id=f"evt_{sequence}", type=kind, sequence=sequence, time=time, data=data)

    def _routes(self) -> None:
        on, p = self.platform.on, "/v1/projects/prj_1"
        page = lambda *items: (200, {"items": list(items), "next_cursor": None, "event_sequence": 0})  # noqa: E731
        accepted = lambda _: (202, {"instance": self.instance, "operation": self.operation})  # noqa: E731
        on("GET", "/v1/projects", lambda _: page(PROJECT))
        on("GET", f"{p}/allocations", lambda _: page(self.allocation))
        wide = {**self.allocation, "project_id": "prj_1", "region": "eu", "sku": "a2", "gpus": 2}
        on("GET", "/v1/tenants/ten_1/allocations", lambda _: page(wide))
        on("GET", f"{p}/instances", lambda _: page(self.instance))
        on("GET", f"{p}/operations", lambda _: page(self.operation))
        on("GET", f"{p}/catalog", lambda _: page(self._entry()))
        on("GET", "/v1/tenants/ten_1/nodes", lambda _: page(self._node()))
        on("GET", "/v1/tenants/ten_1/audit", lambda _: (200, wire(m.AuditList, items=[self._row()], next_after=7)))
        on("GET", "/v1/tenants/ten_1/audit/verify", lambda _: (200, self.verdict))
        on("GET", f"{p}/instances/inst_1", lambda _: (200, self.instance))
        on("GET", f"{p}/operations/op_1", lambda _: (200, self.operation))
        on("GET", f"{p}/events/stream", self.stream)
        on(
            "GET",
            f"{p}/events",
            lambda _: (200, wire(m.EventList, items=[self._event(n, s) for n, s in enumerate(self.steps, 1)])),
        )
        on("GET", "/v1/whoami", lambda _: (200, self._me()))
        on(
            "POST",
            f"{p}/instances",
            lambda c: (200, {"plan": self._plan()}) if c.body["validate_only"] else accepted(c),
        )
        planned = lambda c: (200, {"plan": self._plan()}) if (c.body or {}).get("validate_only") else accepted(c)  # noqa: E731
        on("POST", f"{p}/instances/inst_1/decommission", planned)
        on(
            "POST",
            f"{p}/instances/inst_1/update",
            lambda c: (200, {"plan": self._plan(changes=[CHANGE])}) if c.body.get("validate_only") else accepted(c),
        )
        for verb in ("stop", "start", "restart", "rotate-keys", "upgrade", "rollback"):
            on("POST", f"{p}/instances/inst_1/{verb}", accepted)
        self._member_routes(page, planned)
        on("POST", f"{p}/operations/op_1/retry", accepted)
        on("GET", f"{p}/departure-certificates", lambda _: page(*self.certificates))
        on("POST", f"{p}/operations/op_1/cancel", lambda _: (200, {**self.operation, "cancel_requested": True}))
        self._access_routes(page)
        self._catalog_routes(page)
        self._machine_routes(page)
        on("POST", "/v1/sign-out", lambda _: (204, None))
        on("POST", "/v1/sign-in", lambda _: (200, wire(m.TokenView, access_token="fresh", expires_in=900)))

    def _member_routes(self, page: Callable[..., Any], planned: Callable[..., Any]) -> None:
        on, p = self.platform.on, "/v1/projects/prj_1"
        those = f"{p}/instances/inst_1/members"
        batch = {"batch_id": "batch_1", "instance": self.instance, "operations": [self.operation]}
        gone = wire(m.MemberRemovedView, member_id="mem_1", state="removed", orphan_id="orph_1")
        orphan = wire(m.OrphanView, id="orph_1", node_name="node-a", reason="it burned", created_at=LONG_AGO)
        on("GET", those, lambda _: page(*self.instance["members"]))
        on("POST", those, lambda c: planned(c) if c.body.get("validate_only") else (202, batch))
        for verb in ("drain", "undrain", "restart", "remove", "replace", "retry"):
            on("POST", f"{those}/mem_1/{verb}", planned)
        on("POST", f"{those}/mem_1/tombstone", lambda _: (200, gone))
        on("POST", f"{p}/operations/op_1/release-claim", lambda _: (200, self.operation))
        canceled = {"batch_id": "batch_1", "operations": [self.operation]}
        on("POST", f"{p}/batches/batch_1/cancel", lambda _: (200, canceled))
        on("POST", f"{p}/operations/op_1/abandon", lambda _: (200, self.operation))
        secret = wire(m.SecretView, id="sec_1", name="db_password", version=2, origin="generated", created_at=LONG_AGO)
        inside = f"{p}/instances/inst_1/secrets"
        on("GET", inside, lambda _: page(secret))
        on("POST", inside, lambda _: (201, secret))
        on("POST", f"{inside}/delete", lambda _: (200, {"name": "db_password", "versions": 2}))
        self._credential_routes(page)
        self._machine_access_routes(page)
        self._artifact_routes(page)
        on("GET", f"{p}/orphans", lambda _: page(orphan))
        on("POST", f"{p}/orphans/orph_1/resolve", lambda _: (200, orphan))

    def _credential_routes(self, page: Callable[..., Any]) -> None:
        on, all_ = self.platform.on, "/v1/projects/prj_1/credentials"
        facts = {"id": "cred_1", "name": "storage", "state": "rotating", "version": 2, "public_key": "ssh-ed25519 AAAA"}
        use = {"instance_name": "train", "bound": True, "behind": True, "last_used_at": LONG_AGO}
        given = wire(m.CredentialUse, **use, versions=[{"version": 1, "last_used_at": LONG_AGO}])
        version = wire(m.CredentialVersionView, version=1, origin="imported", created_at=LONG_AGO)
        whole = wire(m.CredentialDetail, **facts, versions=[version], used_by=[given], fingerprint="SHA256:abc")
        on("GET", all_, lambda _: page(wire(m.CredentialView, **facts)))
        on("GET", f"{all_}/cred_1", lambda _: (200, whole))
        for path in (all_, f"{all_}/import"):
            on("POST", path, lambda _: (201, whole))
        for verb in ("rotate", "complete-rotation", "revoke", "bind", "unbind"):
            on("POST", f"{all_}/cred_1/{verb}", lambda _: (200, whole))

    def _machine_access_routes(self, page: Callable[..., Any]) -> None:
        on, authorities = self.platform.on, "/v1/tenants/ten_1/ssh-authorities"
        given = {"id": "grant_1", "node_name": "node-a", "principal_name": "robot", "created_at": LONG_AGO}
        grant = wire(m.AccessGrantView, **given, operation_id="op_1", claim_epoch=2, revoked_at=LONG_AGO, enforced=True)
        on("GET", "/v1/projects/prj_1/access-grants", lambda _: page(grant))
        on("POST", "/v1/projects/prj_1/access-grants/grant_1/revoke", lambda _: (200, grant))
        way = {"address": "10.0.0.9", "port": 22, "login_user": "root", "host_principal": "node_1"}
        keys = {"certificate": "ssh-ed25519-cert-v01@openssh.com AAAA", "host_ca_public_keys": ["ssh-ed25519 AAAA1"]}
        open_ = wire(m.SshSessionView, id="grant_2", ends_at=LONG_AGO, **way, **keys)
        on("POST", "/v1/projects/prj_1/instances/inst_1/members/mem_1/ssh-sessions", lambda _: (201, open_))
        one = {"purpose": "user", "number": 2, "state": "next", "waits_for": ["node-a"], "created_at": LONG_AGO}
        whole = {"items": [wire(m.AuthorityView, **one)]}
        on("GET", authorities, lambda _: (200, whole))
        for verb in ("rotate", "finish"):
            on("POST", f"{authorities}/{verb}", lambda _: (200, whole))

    def _artifact_routes(self, page: Callable[..., Any]) -> None:
        on, t, p = self.platform.on, "/v1/tenants/ten_1", "/v1/projects/prj_1"
        known = {"id": "art_1", "name": "packages", "version": "1.0", "source": "builtin", "state": "registered"}
        artifact, usable = wire(m.ArtifactView, **known), wire(m.ProjectArtifactView, **known, allowed=True)
        facts = {"id": "asrc_1", "name": "models", "policy_name": "acme.models", "tier": "tenant", "state": "enabled"}
        source, blob = wire(m.SourceView, **facts), wire(m.BlobView, sha256="0" * 64)
        on("GET", f"{p}/artifacts", lambda _: page(usable))
        on("GET", f"{p}/artifacts/art_1", lambda _: (200, usable))
        for place in ("/v1", t):
            on("PUT", f"{place}/artifact-store/[0-9a-f]{{64}}", lambda _: (201, blob))
            on("GET", f"{place}/artifacts", lambda _: page(artifact))
            on("POST", f"{place}/artifacts", lambda _: (201, artifact))
            on("POST", f"{place}/artifacts/art_1/withdraw", lambda _: (200, artifact))
            on("GET", f"{place}/artifact-sources", lambda _: page(source))
            on("POST", f"{place}/artifact-sources", lambda _: (201, source))
            for verb in ("enable", "disable", "remove"):
                on("POST", f"{place}/artifact-sources/asrc_1/{verb}", lambda _: (200, source))

    def _access_routes(self, page: Callable[..., Any]) -> None:
        on, p, t = self.platform.on, "/v1/projects/prj_1", "/v1/tenants/ten_1"
        place = {"scope_kind": "project", "scope_id": "prj_1"}
        rule = wire(m.MatchedRule, kind="binding", id="bind_1", role="project_admin", **place)
        why = {"principal_name": "Ada", "allowed": True, "reason": "role project_admin at project prj_1"}
        explained = wire(m.ExplainView, **why, permission="apps.instance.create", matched=[rule], **place)
        ada = {"principal_id": "usr_1", "kind": "user", "name": "Ada", "email": "ada@example.com"}
        member = wire(m.ProjectMemberView, **ada, role="project_admin", binding_id="bind_1", **place)
        binding = wire(m.BindingView, id="bind_1", principal_id="usr_1", role="project_admin", **place)
        user = wire(m.PrincipalView, id="usr_1", kind="user", name="Ada", email="ada@example.com")
        used = {"created_at": LONG_AGO, "last_used_at": LONG_AGO}
        account = wire(m.ServiceAccountView, id="sa_1", name="robot", roles=["app_operator"], active_keys=1, **used)
        key = wire(m.KeyView, id="key_1", active=True, **used)
        s, one = f"{p}/service-accounts", f"{p}/service-accounts/sa_1"
        on("GET", "/v1/whoami/explain", lambda _: (200, explained))
        held = {"scope_kind": "project", "scope_id": "prj_1", "permissions": ["apps.instance.read"]}
        on("GET", "/v1/whoami/permissions", lambda _: (200, held))
        on("GET", f"{p}/explain", lambda _: (200, explained))
        on("GET", f"{p}/members", lambda _: page(member))
        on("GET", f"{t}/users", lambda _: page(user))
        on("GET", f"{t}/roles", lambda _: page(wire(m.RoleView, name="night-shift", bindable_at=["project"])))
        on("POST", f"{t}/role-bindings", lambda _: (201, binding))
        on("POST", f"{t}/role-bindings/bind_1/remove", lambda _: (200, binding))
        facts = {"id": "idp_1", "name": "Acme", "issuer": "https://a.example", "email_domains": ["acme.example"]}
        provider, those = wire(m.ProviderView, **facts, created_at=LONG_AGO), f"{t}/identity-providers"
        on("GET", those, lambda _: page(provider))
        on("POST", those, lambda _: (201, provider))
        for verb in ("update", "delete"):
            on("POST", f"{those}/idp_1/{verb}", lambda _: (200, provider))
        on("POST", f"{t}/invitations", lambda _: (201, wire(m.InvitedView, token="inv_1.abc", expires_at=LONG_AGO)))
        on("GET", "/v1/whoami/sessions", lambda _: page(wire(m.SessionView, id="ses_1", created_at=LONG_AGO)))
        on("POST", "/v1/whoami/sessions/ses_1/revoke", lambda _: (200, wire(m.SessionView, id="ses_1")))
        on("POST", "/v1/whoami/password", lambda _: (200, {"ended_sessions": 2}))
        on("POST", "/v1/invitations/accept", lambda _: (201, user))
        on("GET", s, lambda _: page(account))
        on("POST", s, lambda _: (201, account))
        on("GET", f"{one}/keys", lambda _: page(key, wire(m.KeyView, id="key_2", active=True, created_at=LONG_AGO)))
        on("POST", f"{one}/keys", lambda _: (201, wire(m.KeyView, id="key_2", active=True)))
        on("POST", f"{one}/keys/key_1/retire", lambda _: (200, key))
        for verb in ("disable", "enable", "delete"):
            on("POST", f"{one}/{verb}", lambda _: (200, account))

    def _catalog_routes(self, page: Callable[..., Any]) -> None:
        on, v = self.platform.on, "/v1/apps/slurm/versions"
        facts = {"app_slug": "slurm", "version": "1.0.0", "state_reason": "2.0.0 is out", "created_at": LONG_AGO}
        on("GET", v, lambda _: page(wire(m.VersionView, **facts, state="deprecated")))
        for verb, state in {"publish": "published", "deprecate": "deprecated", "withdraw": "withdrawn"}.items():
            on("POST", f"{v}/1.0.0/{verb}", lambda _, state=state: (200, wire(m.VersionView, **facts, state=state)))

        e = "/v1/projects/prj_1/entitlements"
        entitled = {"app_slug": "slurm", "enabled": True, "active": True, "overlay": None, "expires_at": None}
        on("GET", e, lambda _: page(wire(m.EntitlementView, **entitled)))
        on("POST", e, lambda _: (201, wire(m.EntitlementView, **entitled)))
        gone = wire(m.DisabledEntitlementView, **entitled, keeps_running=["train"])
        on("POST", f"{e}/slurm/disable", lambda _: (200, gone))
        self._policy_routes(page)

    def _policy_routes(self, page: Callable[..., Any]) -> None:
        on, p = self.platform.on, "/v1/projects/prj_1"
        rules, why = {"regions": {"only": ["eu-west"], "deny": ["eu-north"]}}, "the data stays here"
        facts = {"id": "pol_1", "name": "eu", "rules": rules, "reason": why, "readable": True, "etag": "pol_1.3"}
        policy = wire(m.PolicyView, **facts, updated_at=LONG_AGO)
        no = "the region 'eu-north' is denied by the project policy 'eu': the data stays here"
        explained = {"allowed": False, "level": "project", "matched": ["pol_1"], "reason": no}
        ruling = wire(m.RulingView, field="regions", value="eu-north", **explained)
        field = wire(m.FieldView, field="regions", only=["eu-west"], denied=["eu-north"], values=[ruling])
        everything = wire(m.FieldView, field="skus", only=None)
        on("GET", f"{p}/policy/effective", lambda _: (200, wire(m.EffectiveView, fields=[field, everything])))
        on("GET", f"{p}/policy/explain", lambda _: (200, ruling))
        for place in (p, "/v1/tenants/ten_1", "/v1"):
            on("GET", f"{place}/policies", lambda _: page(policy))
            on("GET", f"{place}/policies/eu", lambda _: (200, policy))
            on("PUT", f"{place}/policies/(eu|new)", lambda _: (200, policy))
            on("DELETE", f"{place}/policies/eu", lambda _: (200, policy))

    def _entry(self) -> dict[str, Any]:
        app = wire(m.AppView, slug="slurm", name="Slurm", description="A batch scheduler.")
        facts = {"entitled": True, "reason": "ready to deploy", "manifest": MANIFEST}
        return wire(m.CatalogEntry, app=app, version="1.0.0", **facts)

    def _row(self) -> dict[str, Any]:
        facts = {"sequence": 7, "at": LONG_AGO, "actor_id": "usr_1", "outcome": "denied", "reason": "Ada lacks it."}
        return wire(m.AuditView, **facts, permission="apps.instance.create")

    def _node(self, **more: Any) -> dict[str, Any]:
        facts = {"id": "node_1", "name": "node-a", "state": "ready", "address": "10.0.0.9", "facts": FACTS}
        no = wire(m.ActionView, action="retire", allowed=False, reason="The node is ready.")
        yes = wire(m.ActionView, action="cordon", allowed=True, reason="")
        decided = {"standing": "ready", "standing_reason": None, "pool": None, "available_actions": [yes, no]}
        return wire(m.NodeView, **facts | decided | more, last_seen_at=LONG_AGO)

    def _machine_routes(self, page: Callable[..., Any]) -> None:
        on, p, t = self.platform.on, "/v1/projects/prj_1", "/v1/tenants/ten_1"
        on("GET", "/v1/nodes/node_1", lambda _: (200, self._node()))
        for verb, state in {
            "cordon": "cordoned",
            "uncordon": "ready",
            "drain": "draining",
            "retire": "retired",
        }.items():
            on("POST", f"/v1/nodes/node_1/{verb}", lambda _, state=state: (200, self._node(state=state)))
        task = wire(
            m.TaskView, id="task_1", kind="write_file", state="failed", message="No space.", created_at=LONG_AGO
        )
        on("GET", "/v1/nodes/node_1/tasks", lambda _: page(task))
        on("GET", "/v1/nodes/node_1/tasks/task_1", lambda _: (200, task))
        wiped = wire(m.WipeView, node_id="node_1", allocation_id="alloc_1", wipe="pending")
        newer = wire(m.TaskView, id="task_2", kind="upgrade_agent", state="queued", arguments={"version": "0.2.0"})
        on("POST", "/v1/nodes/node_1/upgrade-agent", lambda _: (202, newer))
        on("POST", "/v1/nodes/node_1/wipe", lambda _: (200, wiped))
        on("POST", "/v1/nodes/node_1/pool", lambda _: (200, self._node(pool="night-shift")))
        pool, region = {"name": "night-shift", "title": "Night"}, {"name": "eu-west", "title": "Europe, west"}
        size = {"gpu_model": "H100", "gpu_count": 8, "cpus": 96, "memory_mb": 1_000_000}
        sku = wire(m.SkuView, name="h100-8x", **size, price_micros_per_hour=23_500_000, currency="EUR")
        quota = {"max_allocations": 10, "max_gpus": None, "used_allocations": 2, "used_gpus": 16}
        for path, one in (
            (f"{t}/pools", wire(m.PoolView, **pool)),
            ("/v1/regions", wire(m.RegionView, **region)),
            ("/v1/skus", sku),
        ):
            on("GET", path, lambda _, one=one: page(one))
            on("POST", path, lambda _, one=one: (201, one))
            on("POST", f"{path}/delete", lambda _, one=one: (200, one))
        on("GET", f"{p}/quota", lambda _: (200, wire(m.QuotaView, **quota)))
        on("POST", f"{p}/quota", lambda _: (200, wire(m.QuotaView, **quota)))
        held = {"id": "alloc_9", "name": "big-1", "node_name": "node-b", "state": "requested", "gpus": 8}
        held |= {"region": "eu-west", "sku": "h100-8x", "expires_at": LONG_AGO, "overdue_since": None, "facts": FACTS}
        on("POST", f"{p}/allocation-requests", lambda _: (201, {"items": [wire(m.AllocationView, **held)]}))
        on("POST", f"{p}/allocations", lambda _: (201, wire(m.AllocationView, **held | {"state": "active"})))
        on("POST", f"{p}/allocations/alloc_1/extend", lambda _: (200, wire(m.AllocationView, **held)))

    def _me(self) -> dict[str, Any]:
        principal = wire(m.PrincipalView, id="usr_1", kind="user", name="Ada", email="ada@example.com")
        project = wire(
            m.ProjectMembership, id="prj_1", tenant_id="ten_1", slug="red", name="Red team", roles=["project_admin"]
        )
        return wire(m.WhoamiView, principal=principal, tenants=[TENANT], projects=[project])

    def _plan(self, **more: Any) -> dict[str, Any]:
        host = wire(
            m.PlannedHost,
            allocation_id="alloc_1",
            node_name="node-a",
            address="10.0.0.9",
            components=["controller", "worker"],
        )
        facts = {"summary": "Deploy slurm 1.0.0 as 'train' on 1 machine.", "hosts": [host], "charged_to": "prj_1"}
        return wire(m.PlanView, **facts, **more)
