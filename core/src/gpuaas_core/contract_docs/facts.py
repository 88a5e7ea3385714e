"""Generates the documents for the console and the SDK: the actions of each resource and the states that allow them, the
lifecycles with their final states, and the resources that each event makes outdated.

The documents are derived from the tables of the rooms and from the routes, so that clients need no copies of them.
"""

from collections.abc import Mapping
from typing import TypedDict

from fastapi import FastAPI
from fastapi.routing import APIRoute

from ..capacity.states import ALLOCATION, NODE
from ..catalog.states import VERSION
from ..credentials.states import CREDENTIAL
from ..events.event_log import TYPES
from ..instances.states import INSTANCE, KINDS, MEMBER, OF_INSTANCE, OF_MEMBER
from ..kit.lifecycle import Lifecycle
from ..operations.states import OPERATION, RETRYABLE
from .reference.lifecycles import LIVES

INSTANCE_URL = "/v1/projects/{project_id}/instances/{instance_id}"
MEMBER_URL = f"{INSTANCE_URL}/members/{{member_id}}"
OPERATION_URL = "/v1/projects/{project_id}/operations/{operation_id}"


class Action(TypedDict):
    permission: str
    method: str
    path: str
    states: list[str]


class Life(TypedDict):
    title: str
    initial: str
    live: list[str]
    terminal: list[str]
    transitions: dict[str, dict[str, str]]


# --- actions ---------------------------------------------------------------------------------------------------------


def actions(app: FastAPI) -> dict[str, dict[str, Action]]:
    """Return the actions of each kind of resource, with the permission, the route, and the states that allow them.

    An app's manifest may offer fewer actions, and an operation under way may block some: `available_actions` of a
    resource lists the actions that are possible now.
    """
    posts = _posts(app)
    return {
        "instance": _instance_actions(posts),
        "member": _member_actions(posts),
        "operation": _operation_actions(posts),
        "node": _moves_with_a_route(posts, "/v1/nodes/{node_id}", NODE),
        "allocation": _allocation_actions(posts),
        "credential": _moves_with_a_route(posts, "/v1/projects/{project_id}/credentials/{credential_id}", CREDENTIAL),
        "app_version": _moves_with_a_route(posts, "/v1/apps/{app_slug}/versions/{version}", VERSION),
    }


Posts = Mapping[str, str]  # path → the permission that the route requires


def _posts(app: FastAPI) -> Posts:
    routes = [route for route in app.routes if isinstance(route, APIRoute) and "POST" in (route.methods or ())]
    return {route.path: (route.openapi_extra or {})["x-permission"] for route in routes}


def _action(posts: Posts, path: str, states: list[str]) -> Action:
    return {"permission": posts[path], "method": "POST", "path": path, "states": states}


def _states(life: Lifecycle, *moves: str) -> list[str]:
    """Return the states in which at least one of the transitions is possible."""
    return [state for state in life.moves if any(life.allows(state, move) for move in moves)]


def _again(target: str) -> set[str]:
    return {kind.again for kind in KINDS.values() if kind.target == target}


def _instance_actions(posts: Posts) -> dict[str, Action]:
    kinds = {kind.key or name: kind for name, kind in KINDS.items() if kind.target == OF_INSTANCE and kind.ask}
    paths = {key: f"{INSTANCE_URL}/{key.replace('_', '-')}" for key in kinds}
    return {key: _action(posts, paths[key], _states(INSTANCE, kind.ask or "")) for key, kind in kinds.items()} | {
        "retry": _action(posts, f"{OPERATION_URL}/retry", _states(INSTANCE, *_again(OF_INSTANCE))),
        "add_{component}": _action(posts, f"{INSTANCE_URL}/members", ["running"]),
    }


def _member_actions(posts: Posts) -> dict[str, Action]:
    staying = [state for state in MEMBER.moves if state not in ("removing", "removed")]
    kinds = {kind.key: kind for kind in KINDS.values() if kind.target == OF_MEMBER and kind.key != "add"}
    possible = {key: _states(MEMBER, kind.ask) if kind.ask else staying for key, kind in kinds.items()}
    possible |= {"retry": _states(MEMBER, *_again(OF_MEMBER)), "tombstone": _states(MEMBER, "tombstone")}
    return {key: _action(posts, f"{MEMBER_URL}/{key}", states) for key, states in possible.items()}


def _operation_actions(posts: Posts) -> dict[str, Action]:
    live = list(OPERATION.live_states)
    # A controller releases its claim on another route; this is the route for people.
    release = next(path for path, key in posts.items() if key == "apps.operation.release")
    return {
        "retry": _action(posts, f"{OPERATION_URL}/retry", list(RETRYABLE)),
        "cancel": _action(posts, f"{OPERATION_URL}/cancel", live),
        "release_claim": _action(posts, release, _states(OPERATION, "release")),
        "abandon": _action(posts, f"{OPERATION_URL}/abandon", [*live, *RETRYABLE]),
    }


def _allocation_actions(posts: Posts) -> dict[str, Action]:
    url = "/v1/projects/{project_id}/allocations/{allocation_id}"
    extend = {"extend": _action(posts, f"{url}/extend", _states(ALLOCATION, "release"))}
    return _moves_with_a_route(posts, url, ALLOCATION) | extend


def _moves_with_a_route(posts: Posts, url: str, life: Lifecycle) -> dict[str, Action]:
    """Return the transitions of a lifecycle that have a route of the same name, so that a caller can request them."""
    moves = dict.fromkeys(move for row in life.moves.values() for move in row)
    paths = {move: f"{url}/{move.replace('_', '-')}" for move in moves}
    return {move: _action(posts, path, _states(life, move)) for move, path in paths.items() if path in posts}


# --- lifecycles ------------------------------------------------------------------------------------------------------


def lifecycles() -> dict[str, Life]:
    return {
        life.noun.lower().replace(" ", "_").replace("-", "_"): _life(title, life) for title, (life, _) in LIVES.items()
    }


def _life(title: str, life: Lifecycle) -> Life:
    return {
        "title": title,
        "initial": next(iter(life.moves)),
        "live": list(life.live_states),
        "terminal": [state for state in life.moves if life.terminal(state)],
        "transitions": life.moves,
    }


# --- events ----------------------------------------------------------------------------------------------------------

# A kind of resource, and the collections it is read from. An item is read below its collection.
COLLECTIONS: dict[str, tuple[str, ...]] = {
    "operation": ("/v1/projects/{project_id}/operations", "/v1/operations"),
    "instance": ("/v1/projects/{project_id}/instances",),
    "member": (f"{INSTANCE_URL}/members",),
    "departure_certificate": ("/v1/projects/{project_id}/departure-certificates",),
    "orphan": ("/v1/projects/{project_id}/orphans",),
    "access_grant": ("/v1/projects/{project_id}/access-grants",),
    "secret": (f"{INSTANCE_URL}/secrets",),
    "credential": ("/v1/projects/{project_id}/credentials",),
    "allocation": ("/v1/projects/{project_id}/allocations", "/v1/tenants/{tenant_id}/allocations"),
    "quota": ("/v1/projects/{project_id}/quota",),
    "node": ("/v1/tenants/{tenant_id}/nodes", "/v1/nodes"),
    "task": ("/v1/nodes/{node_id}/tasks", f"{OPERATION_URL}/tasks"),
    "region": ("/v1/regions",),
    "sku": ("/v1/skus",),
    "pool": ("/v1/tenants/{tenant_id}/pools",),
    "ssh_authority": ("/v1/tenants/{tenant_id}/ssh-authorities",),
    "app": ("/v1/apps",),
    "app_version": ("/v1/apps/{app_slug}/versions",),
    "catalog": ("/v1/projects/{project_id}/catalog",),
    "entitlement": ("/v1/projects/{project_id}/entitlements",),
    "policy": (
        "/v1/policies",
        "/v1/tenants/{tenant_id}/policies",
        "/v1/projects/{project_id}/policies",
        "/v1/projects/{project_id}/policy/effective",
        "/v1/projects/{project_id}/policy/explain",
    ),
    "artifact_source": ("/v1/artifact-sources", "/v1/tenants/{tenant_id}/artifact-sources"),
    "artifact": ("/v1/artifacts", "/v1/tenants/{tenant_id}/artifacts", "/v1/projects/{project_id}/artifacts"),
    "tenant": ("/v1/tenants",),
    "project": ("/v1/projects",),
    "user": ("/v1/tenants/{tenant_id}/users",),
    "invitation": ("/v1/tenants/{tenant_id}/invitations",),
    "identity_provider": ("/v1/tenants/{tenant_id}/identity-providers",),
    "role": ("/v1/tenants/{tenant_id}/roles",),
    "role_binding": ("/v1/tenants/{tenant_id}/role-bindings", "/v1/projects/{project_id}/members"),
    "deny_rule": ("/v1/deny-rules", "/v1/tenants/{tenant_id}/deny-rules"),
    "delegation": ("/v1/projects/{project_id}/delegations",),
    "break_glass": ("/v1/platform/break-glass", "/v1/tenants/{tenant_id}/break-glass"),
    "service_account": ("/v1/projects/{project_id}/service-accounts",),
    "service_account_key": ("/v1/projects/{project_id}/service-accounts/{account_id}/keys",),
    "session": ("/v1/whoami/sessions", "/v1/auth/session"),
    "permission": (
        "/v1/whoami",
        "/v1/whoami/permissions",
        "/v1/whoami/explain",
        "/v1/projects/{project_id}/explain",
        "/v1/tenants/{tenant_id}/explain",
    ),
    "event": ("/v1/projects/{project_id}/events", "/v1/tenants/{tenant_id}/events"),
    "audit": ("/v1/tenants/{tenant_id}/audit",),
    "triage": ("/v1/triage",),
}

# Prefixes of event types, and the kinds of resources that these events make outdated, besides the list of events.
# The longest matching prefix counts.
TOUCHED: dict[str, tuple[str, ...]] = {
    "apps.operation.": ("operation", "instance", "member"),
    "apps.instance.": ("instance", "member", "allocation"),
    "apps.member.": ("instance", "member", "allocation"),
    "apps.departure.": ("departure_certificate",),
    "apps.orphan.": ("orphan", "node"),
    "apps.secret.": ("secret",),
    "apps.access.": ("access_grant", "departure_certificate"),
    "custody.access.": ("access_grant", "departure_certificate"),
    "custody.credential.": ("credential",),
    "custody.authority.": ("ssh_authority", "node"),
    "capacity.enrolment.": ("node",),
    "capacity.node.": ("node", "allocation"),
    "capacity.task.": ("task",),
    "capacity.region.": ("region",),
    "capacity.sku.": ("sku",),
    "capacity.pool.": ("pool",),
    "capacity.quota.": ("quota",),
    "capacity.allocation.": ("allocation", "node", "quota"),
    "catalog.app.": ("app", "catalog"),
    "catalog.version.": ("app", "app_version", "catalog"),
    "catalog.entitlement.": ("entitlement", "catalog"),
    "policy.": ("policy", "catalog"),
    "artifacts.source.": ("artifact_source", "artifact"),
    "artifacts.": ("artifact",),
    "tenancy.tenant.": ("tenant", "permission"),
    "tenancy.project.": ("project", "permission"),
    "tenancy.user.": ("user", "role_binding"),
    "tenancy.session.": ("session",),
    "tenancy.invitation.": ("invitation", "user", "role_binding"),
    "tenancy.identity.": ("user",),
    "tenancy.identity_provider.": ("identity_provider",),
    "tenancy.binding.": ("role_binding", "service_account", "project", "permission"),
    "tenancy.role.": ("role", "permission"),
    "tenancy.deny.": ("deny_rule", "permission"),
    "tenancy.delegation.": ("delegation", "permission"),
    "tenancy.break_glass.": ("break_glass", "permission"),
    "tenancy.service_account.": ("service_account", "service_account_key", "role_binding"),
}


def events(app: FastAPI) -> dict[str, object]:
    """Return the kinds of resources that each event makes outdated, and the routes to read them from."""
    return {
        "events": {name: sorted({*touched(name), "event"}) for name in sorted(TYPES)},
        "reads": {kind: _reads(app, collections) for kind, collections in sorted(COLLECTIONS.items())},
    }


def touched(type: str) -> tuple[str, ...]:
    fitting = [start for start in TOUCHED if type.startswith(start)]
    return TOUCHED[max(fitting, key=len)] if fitting else ()


def _reads(app: FastAPI, collections: tuple[str, ...]) -> list[str]:
    return sorted(
        route.path
        for route in app.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and collection_of(route.path) in collections
    )


def collection_of(path: str) -> str:
    """Return the collection that a path belongs to:
    the path without the id at its end, or the path itself if it has none."""
    return path.rsplit("/", 1)[0] if path.endswith("}") else path
