"""Permission keys and the system roles, as data. Routes require a key; role names appear only here."""

PERMISSIONS: dict[str, str] = {
    "identity.self.use": "see one's own identity, sessions and rights; sign out, change one's password",
    "platform.tenant.create": "create a tenant",
    "platform.tenant.read": "see all tenants",
    "platform.deny.create": "deny permissions to every caller on the platform",
    "platform.deny.read": "see the platform's deny rules",
    "platform.deny.remove": "remove a deny rule of the platform",
    "platform.break_glass.open": "read a tenant for up to an hour, announced to it",
    "platform.break_glass.approve": "approve another administrator's break-glass that changes a tenant",
    "platform.break_glass.close": "end a break-glass",
    "platform.break_glass.read": "see every break-glass",
    "tenancy.tenant.read": "see a tenant",
    "tenancy.project.create": "create a project in a tenant",
    "tenancy.project.read": "see a project",
    "tenancy.user.create": "create a local user in a tenant, or invite one",
    "tenancy.user.read": "see the users and invitations of a tenant",
    "tenancy.user.disable": "disable and enable the users of a tenant",
    "tenancy.identity_provider.create": "let people of a tenant sign in through a provider",
    "tenancy.identity_provider.read": "see a tenant's identity providers",
    "tenancy.identity_provider.update": "change how people sign in through a provider",
    "tenancy.identity_provider.delete": "delete a tenant's identity provider",
    "tenancy.break_glass.read": "see which platform administrators accessed the tenant, and why",
    "iam.binding.create": "bind a role one holds",
    "iam.binding.read": "see role bindings",
    "iam.binding.remove": "remove a role binding",
    "iam.member.read": "see who holds which role in a project, and from where",
    "iam.decision.explain": "see why another principal may or may not do something",
    "iam.role.create": "create a role of the tenant from permissions one holds",
    "iam.role.read": "see the roles that can be bound",
    "iam.role.delete": "delete a role of the tenant",
    "iam.deny.create": "deny permissions to every caller in a tenant or project",
    "iam.deny.read": "see a tenant's deny rules",
    "iam.deny.remove": "remove a deny rule of a tenant",
    "iam.delegation.create": "delegate permissions one holds to a service account, for a time",
    "iam.delegation.read": "see the delegations of a project",
    "iam.delegation.revoke": "revoke delegations of a project",
    "iam.tenant_admin.appoint": "appoint an administrator of a tenant",
    "iam.operator.appoint": "make an account an operator of a project, and add keys to it: root on the project's nodes",
    "iam.service_account.create": "create a service account in a project",
    "iam.service_account.read": "see the service accounts of a project",
    "iam.service_account.disable": "disable and enable a service account",
    "iam.service_account.rotate": "add and retire the keys of a service account",
    "iam.service_account.delete": "delete a service account",
    "catalog.app.create": "register an app",
    "catalog.app.read": "see apps and their versions",
    "catalog.version.create": "add an app version with its manifest",
    "catalog.version.publish": "publish an app version",
    "catalog.version.deprecate": "deprecate an app version: it can be deployed with a warning",
    "catalog.version.withdraw": "withdraw an app version: it can no longer be deployed",
    "catalog.entitlement.create": "entitle a project to an app",
    "catalog.entitlement.disable": "disable an entitlement",
    "catalog.entitlement.read": "see what a project may deploy and why not",
    "policy.platform.set": "set the platform's policies: what may be deployed anywhere",
    "policy.platform.read": "see the platform's policies",
    "policy.platform.remove": "remove a policy of the platform",
    "policy.tenant.set": "set a tenant's policies",
    "policy.tenant.read": "see a tenant's policies",
    "policy.tenant.remove": "remove a policy of a tenant",
    "policy.project.set": "set a project's policies",
    "policy.project.read": "see a project's policies, and what all levels together allow",
    "policy.project.remove": "remove a policy of a project",
    "capacity.enrolment.create": "invite a node with a one-time token",
    "capacity.node.read": "see nodes",
    "capacity.node.report": "report as the node itself",
    "capacity.node.cordon": "stop new allocations of a node",
    "capacity.node.uncordon": "allow allocations of a node again",
    "capacity.node.drain": "drain a node",
    "capacity.node.retire": "retire a node permanently and close its identity",
    "capacity.node.upgrade": "upgrade a node's agent to the version the platform ships",
    "capacity.node.wipe": "wipe a node again, or confirm that it was cleaned by hand",
    "capacity.task.read": "see the tasks of nodes and their results",
    "capacity.node.readmit": "invite a node to rejoin with a new identity",
    "capacity.region.create": "add a region to the platform",
    "capacity.region.delete": "delete a region without nodes",
    "capacity.region.read": "see the platform's regions",
    "capacity.sku.create": "add a SKU to the platform, with its price",
    "capacity.sku.delete": "delete a SKU without nodes",
    "capacity.sku.read": "see the platform's SKUs",
    "capacity.pool.create": "create a pool of a tenant's nodes",
    "capacity.pool.delete": "delete an empty pool",
    "capacity.pool.read": "see a tenant's pools",
    "capacity.pool.assign": "add a node to a pool or remove it",
    "capacity.quota.set": "set how much a project may hold",
    "capacity.quota.read": "see how much a project may hold, and holds",
    "capacity.allocation.create": "allocate nodes to a project",
    "capacity.allocation.read": "see a project's allocations",
    "capacity.allocation.release": "release an allocation",
    "capacity.allocation.extend": "change the end of an allocation's lease",
    "artifacts.platform_source.create": "add an artifact source of the platform",
    "artifacts.platform_source.read": "see the platform's artifact sources, not their credentials",
    "artifacts.platform_source.update": "enable, disable and remove the platform's artifact sources, set credentials",
    "artifacts.platform_artifact.create": "push and register artifacts for all tenants",
    "artifacts.platform_artifact.read": "see the platform's artifacts",
    "artifacts.platform_artifact.withdraw": "withdraw an artifact of the platform",
    "artifacts.tenant_source.create": "add an artifact source of a tenant",
    "artifacts.tenant_source.read": "see the artifact sources a tenant can use, not their credentials",
    "artifacts.tenant_source.update": "enable, disable and remove a tenant's artifact sources, set credentials",
    "artifacts.tenant_artifact.create": "push and register artifacts of a tenant",
    "artifacts.tenant_artifact.read": "see a tenant's artifacts",
    "artifacts.tenant_artifact.withdraw": "withdraw an artifact of a tenant",
    "artifacts.artifact.read": "see and resolve the artifacts a project may use",
    "artifacts.delivery.fetch": "fetch deliveries to the node, as the node itself",
    "apps.instance.create": "deploy an app",
    "apps.instance.read": "see app instances, their members and operations",
    "apps.instance.decommission": "tear an app instance down",
    "apps.instance.operate": "stop, start and restart an app instance",
    "apps.instance.rotate": "rotate the secrets that the members of an app instance share",
    "apps.instance.update": "change the inputs of an app instance",
    "apps.instance.upgrade": "upgrade an app instance to another version, and roll back",
    "apps.member.add": "add members to an app instance",
    "apps.member.operate": "drain, undrain and restart members, and retry what failed on them",
    "apps.member.remove": "remove and replace members",
    "apps.operation.retry": "retry a failed operation",
    "apps.operation.cancel": "cancel an operation",
    "apps.operation.release": "revoke a controller's claim",
    "apps.operation.abandon": "abandon work, a teardown or a failed member without evidence; leaves orphan records",
    "apps.orphan.read": "see orphan records: what may be left on nodes",
    "apps.orphan.resolve": "resolve an orphan record",
    "apps.operation.work": "claim operations, report on them and on running instances (app controllers)",
    "apps.access.grant": "get a short-lived certificate for nodes, for a claim or an observation (app controllers)",
    "apps.access.enter": "open an SSH session on the node of a member, as an unprivileged user",
    "apps.task.ask": "run a published task on the nodes of a claimed operation (app controllers)",
    "apps.access.read": "see which certificates for nodes are valid now, and whose",
    "apps.access.revoke": "revoke a certificate and end its sessions",
    "apps.secret.read": "see the names and versions of an instance's secrets",
    "apps.secret.issue": "give an instance a secret, generated or provided, and delete one",
    "apps.secret.use": "issue and read the secrets of a claimed operation's instance, sealed (app controllers)",
    "custody.authority.read": "see a tenant's SSH authorities, public halves only, and who still needs an old one",
    "custody.authority.rotate": "rotate an SSH authority",
    "custody.credential.create": "generate or import an access credential of a project",
    "custody.credential.read": "see a project's access credentials, public halves only, and who uses them",
    "custody.credential.rotate": "rotate a credential, and end the rotation",
    "custody.credential.revoke": "revoke a credential permanently",
    "custody.credential.bind": "bind a credential to instances",
    "custody.credential.use": "get a credential of a claimed operation's instance, sealed, once (app controllers)",
    "ledger.event.read": "read events",
    "ledger.audit.read": "read the audit trail",
    "ledger.audit.verify": "check that no audit row was changed, removed or added",
    "ledger.telemetry.write": "send log lines and spans of a project (app controllers)",
    "ledger.triage.read": "read the visible timeline of a correlation id",
    "scheduler.catalog.read": "see schedulers on offer",
    "scheduler.instance.read": "see scheduler instances",
    "scheduler.instance.create": "deploy a scheduler",
    "scheduler.instance.update": "change a scheduler instance",
    "scheduler.instance.delete": "tear a scheduler down",
    "scheduler.queue.submit": "submit jobs",
    "scheduler.queue.read": "see jobs",
    "scheduler.queue.cancel": "cancel jobs",
    "scheduler.node.read": "see scheduler nodes",
    "scheduler.node.operate": "drain, cordon, uncordon, label scheduler nodes",
}

# Permissions that lead to root on a project's nodes, by a claim, an observation or a task. Giving one to an account
# (by a role, a delegation or a key to sign in with) is appointing an operator, and needs the key below as well.
OPERATOR_KEYS = frozenset(
    {"apps.operation.work", "apps.access.grant", "apps.task.ask", "apps.secret.use", "custody.credential.use"}
)
APPOINT_OPERATOR = "iam.operator.appoint"

BREAK_THE_GLASS = "platform.break_glass.open"  # losing it ends the break-glasses opened with it

_SCHEDULER_READ = {"scheduler.catalog.read", "scheduler.instance.read", "scheduler.queue.read", "scheduler.node.read"}
_SCHEDULER_ALL = {key for key in PERMISSIONS if key.startswith("scheduler.")}

_VIEWER = {
    "tenancy.project.read",
    "catalog.entitlement.read",
    "policy.project.read",
    "capacity.allocation.read",
    "capacity.quota.read",
    "artifacts.artifact.read",
    "apps.instance.read",
    "apps.orphan.read",
    "ledger.event.read",
} | _SCHEDULER_READ

_MEMBER = _VIEWER | {"scheduler.queue.submit", "scheduler.queue.cancel"}

_PROJECT_ADMIN = (
    _MEMBER
    | _SCHEDULER_ALL
    | {
        "iam.service_account.create",
        "iam.service_account.read",
        "iam.service_account.disable",
        "iam.service_account.rotate",
        "iam.service_account.delete",
        "iam.delegation.create",
        "iam.delegation.read",
        "iam.delegation.revoke",
        "iam.member.read",
        "iam.decision.explain",
        "capacity.allocation.create",
        "capacity.allocation.release",
        "capacity.allocation.extend",
        "apps.instance.create",
        "apps.instance.decommission",
        "apps.instance.operate",
        "apps.instance.rotate",
        "apps.instance.update",
        "apps.instance.upgrade",
        "apps.member.add",
        "apps.member.operate",
        "apps.member.remove",
        "apps.operation.retry",
        "apps.operation.cancel",
        "apps.operation.release",
        "apps.operation.abandon",
        "apps.orphan.resolve",
        "apps.access.enter",
        "apps.access.read",
        "apps.access.revoke",
        "apps.secret.read",
        "apps.secret.issue",
        "custody.credential.create",
        "custody.credential.read",
        "custody.credential.rotate",
        "custody.credential.revoke",
        "custody.credential.bind",
    }
)

_APP_OPERATOR = _VIEWER | OPERATOR_KEYS | {"ledger.telemetry.write"}

_TENANT_ADMIN = (
    _PROJECT_ADMIN
    | _APP_OPERATOR
    | {
        "tenancy.tenant.read",
        "tenancy.project.create",
        "tenancy.user.create",
        "tenancy.user.read",
        "tenancy.user.disable",
        "tenancy.identity_provider.create",
        "tenancy.identity_provider.read",
        "tenancy.identity_provider.update",
        "tenancy.identity_provider.delete",
        "tenancy.break_glass.read",
        "iam.binding.create",
        "iam.binding.read",
        "iam.binding.remove",
        APPOINT_OPERATOR,
        "iam.role.create",
        "iam.role.read",
        "iam.role.delete",
        "iam.deny.create",
        "iam.deny.read",
        "iam.deny.remove",
        "catalog.entitlement.create",
        "catalog.entitlement.disable",
        "policy.tenant.set",
        "policy.tenant.read",
        "policy.tenant.remove",
        "policy.project.set",
        "policy.project.remove",
        "capacity.enrolment.create",
        "capacity.node.read",
        "capacity.node.cordon",
        "capacity.node.uncordon",
        "capacity.node.drain",
        "capacity.node.retire",
        "capacity.node.upgrade",
        "capacity.node.wipe",
        "capacity.task.read",
        "capacity.node.readmit",
        "capacity.pool.create",
        "capacity.pool.delete",
        "capacity.pool.read",
        "capacity.pool.assign",
        "capacity.quota.set",
        "custody.authority.read",
        "custody.authority.rotate",
        "artifacts.tenant_source.create",
        "artifacts.tenant_source.read",
        "artifacts.tenant_source.update",
        "artifacts.tenant_artifact.create",
        "artifacts.tenant_artifact.read",
        "artifacts.tenant_artifact.withdraw",
        "ledger.audit.read",
        "ledger.audit.verify",
    }
)

_PLATFORM_OPS = {
    "platform.tenant.read",
    "policy.platform.read",
    "tenancy.tenant.read",
    "capacity.node.read",
    "artifacts.platform_source.read",
    "artifacts.platform_artifact.read",
    "ledger.audit.read",
    "ledger.audit.verify",
}

_PLATFORM_ADMIN = _PLATFORM_OPS | {
    "platform.tenant.create",
    "platform.deny.create",
    "platform.deny.read",
    "platform.deny.remove",
    BREAK_THE_GLASS,
    "platform.break_glass.approve",
    "platform.break_glass.close",
    "platform.break_glass.read",
    "tenancy.user.create",
    "tenancy.user.read",
    "tenancy.user.disable",
    "iam.binding.create",
    "iam.binding.read",
    "iam.binding.remove",
    "iam.tenant_admin.appoint",
    "catalog.app.create",
    "catalog.version.create",
    "catalog.version.publish",
    "catalog.version.deprecate",
    "catalog.version.withdraw",
    "policy.platform.set",
    "policy.platform.remove",
    "capacity.region.create",
    "capacity.region.delete",
    "capacity.sku.create",
    "artifacts.platform_source.create",
    "artifacts.platform_source.update",
    "artifacts.platform_artifact.create",
    "artifacts.platform_artifact.withdraw",
    "capacity.sku.delete",
}

PLATFORM_ADMIN = "platform_admin"  # the role of the first administrator, created on the platform's own host
NODE_AGENT = "node_agent"

ROLES: dict[str, frozenset[str]] = {
    PLATFORM_ADMIN: frozenset(_PLATFORM_ADMIN),
    "platform_ops": frozenset(_PLATFORM_OPS),
    "tenant_admin": frozenset(_TENANT_ADMIN),
    "project_admin": frozenset(_PROJECT_ADMIN),
    "project_member": frozenset(_MEMBER),
    "project_viewer": frozenset(_VIEWER),
    "app_operator": frozenset(_APP_OPERATOR),
    NODE_AGENT: frozenset({"capacity.node.report", "artifacts.delivery.fetch"}),
}

# Held by every verified caller, in every scope.
EVERYBODY = frozenset(
    {"identity.self.use", "catalog.app.read", "capacity.region.read", "capacity.sku.read", "ledger.triage.read"}
)

# Not deniable: reading oneself, and fixing the rules. Otherwise a wrong rule could not be removed.
UNDENIABLE = frozenset(
    {"identity.self.use"}
    | {f"{area}.deny.{verb}" for area in ("platform", "iam") for verb in ("create", "read", "remove")}
)

# Not delegable: access management, one's own identity, being a node, and managing people.
UNLENDABLE = frozenset(
    key
    for key in PERMISSIONS
    if key.startswith(
        ("iam.", "platform.", "identity.", "tenancy.user.", "tenancy.identity_provider.", "tenancy.break_glass.")
    )
    or key
    in ("tenancy.project.create", "capacity.node.report", "capacity.enrolment.create", "artifacts.delivery.fetch")
)

# Break-glass modes of a platform administrator in a tenant. Neither has keys that issue credentials or permissions;
# `operate` can change resources, and so needs a second administrator's approval.
_LOOKING = frozenset(
    key
    for key in ROLES["tenant_admin"]
    if key.rsplit(".", 1)[1] in ("read", "verify", "explain") and "secret" not in key and "credential" not in key
)
BREAK_GLASS: dict[str, frozenset[str]] = {
    "look": _LOOKING,
    "operate": _LOOKING
    | {
        "apps.instance.decommission",
        "apps.operation.retry",
        "apps.operation.cancel",
        "apps.access.revoke",
        "capacity.allocation.release",
        "iam.delegation.revoke",
        "iam.service_account.disable",
        "scheduler.queue.cancel",
        "scheduler.node.operate",
    },
}
NEEDS_APPROVAL = frozenset({"operate"})

# The widest scope at which a role may be bound.
BINDABLE: dict[str, frozenset[str]] = {
    "platform_admin": frozenset({"platform"}),
    "platform_ops": frozenset({"platform"}),
    "tenant_admin": frozenset({"tenant"}),
    "project_admin": frozenset({"tenant", "project"}),
    "project_member": frozenset({"tenant", "project"}),
    "project_viewer": frozenset({"tenant", "project"}),
    "app_operator": frozenset({"project"}),
}

# Roles that the holder of one key may bind although the holder lacks some of the role's keys:
# how a tenant gets its first administrator, and a controller its working role.
APPOINTED_BY: dict[str, str] = {
    "tenant_admin": "iam.tenant_admin.appoint",
    "app_operator": APPOINT_OPERATOR,
}

assert PERMISSIONS.keys() >= UNDENIABLE, "an undeniable key does not exist"
assert all(keys <= PERMISSIONS.keys() for keys in ROLES.values()), "a role names an unknown permission key"
