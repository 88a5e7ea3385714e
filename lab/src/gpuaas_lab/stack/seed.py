"""Creates the demo tenant: two projects, three people, an app, a controller identity per project. Safe to repeat."""

from dataclasses import dataclass
from pathlib import Path

from gpuaas_sdk import Bearer, Calls, Client, ServiceAccount
from gpuaas_sdk.client.errors import Conflict

from gpuaas_lab.stack.credentials import ADMIN, BOSS, USER, Credentials

TENANT, PROJECTS = "demo", {"research": "Research", "training": "Training"}


@dataclass
class Demo:
    """The clients and ids that the later steps need."""

    admin: Client
    boss: Client
    tenant_id: str
    projects: dict[str, str]
    identities: dict[str, Path]

    def close(self) -> None:
        self.admin.close()
        self.boss.close()


def signed_in(api: str, email: str, password: str) -> Client:
    with Client(api, Bearer()) as anonymous:
        token = anonymous.sign_in(email, password).access_token
    return Client(api, Bearer(token))


def seed(api: str, credentials: Credentials, identities: Path, controller_api: str) -> Demo:
    admin = signed_in(api, ADMIN, credentials.admin_password)
    tenant_id = _tenant(admin)
    _tenant_admin(admin, tenant_id, credentials)
    boss = signed_in(api, BOSS, credentials.tenant_admin_password)
    projects = {slug: _project(boss, tenant_id, slug, name) for slug, name in PROJECTS.items()}
    _member(boss, tenant_id, projects["research"], credentials)
    made = {slug: _identity(boss, identities, slug, project, controller_api) for slug, project in projects.items()}
    return Demo(admin, boss, tenant_id, projects, made)


def entitle(demo: Demo, app_slug: str) -> None:
    for project in demo.projects.values():
        demo.boss.entitle(project, app_slug=app_slug)


def _tenant(admin: Client) -> str:
    known = {tenant.slug: tenant.id for tenant in admin.list_tenants(limit=200).items}
    return known.get(TENANT) or admin.create_tenant(slug=TENANT, name="Demo company").id


def _tenant_admin(admin: Client, tenant_id: str, credentials: Credentials) -> None:
    people = {user.email: user.id for user in admin.list_users(tenant_id, limit=200).items}
    user = people.get(BOSS) or _user(admin, tenant_id, BOSS, "Dana (tenant admin)", credentials.tenant_admin_password)
    admin.create_role_binding(tenant_id, principal_id=user, role="tenant_admin")


def _member(boss: Client, tenant_id: str, project_id: str, credentials: Credentials) -> None:
    people = {user.email: user.id for user in boss.list_users(tenant_id, limit=200).items}
    user = people.get(USER) or _user(boss, tenant_id, USER, "Sam (project member)", credentials.user_password)
    boss.create_role_binding(tenant_id, principal_id=user, role="project_member", project_id=project_id)


def _user(client: Client, tenant_id: str, email: str, name: str, password: str) -> str:
    return client.create_user(tenant_id, email=email, name=name, password=password).id


def _project(boss: Client, tenant_id: str, slug: str, name: str) -> str:
    known = {project.slug: project.id for project in boss.every(Calls.list_projects)}
    try:
        return known.get(slug) or boss.create_project(tenant_id, slug=slug, name=name).id
    except Conflict:
        return next(project.id for project in boss.every(Calls.list_projects) if project.slug == slug)


def _identity(boss: Client, folder: Path, slug: str, project_id: str, api: str) -> Path:
    """Create the identity file of a controller. The private key stays in this file; the platform gets only the public
    key."""
    path = folder / f"slurm-{slug}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        account = ServiceAccount.generate(project_id=project_id, api=api)
        made = boss.create_service_account(
            project_id, name="slurm-controller", public_jwk=account.public_jwk, roles=["app_operator"]
        )
        account.registered(made.id).save(path)
    return path
