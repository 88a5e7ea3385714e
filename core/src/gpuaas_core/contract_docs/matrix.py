"""The access matrix: for every route and every kind of caller, the expected response. It is published as
`contracts/access-matrix.json`.

The matrix is computed from the permission tables alone, without the evaluator that the API uses, so that the two check
each other; core/tests/properties/test_access_matrix.py then requests every cell of the running API.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TypedDict

from fastapi import FastAPI

from ..api.app import api_routes, marks_of
from ..authz.permissions import BREAK_GLASS, EVERYBODY, ROLES
from ..http.call import PUBLIC, REACHABLE
from ..kit.json_types import Json

ALLOWED, NO_ONE, REFUSED, UNSEEN, FORGED = "allowed", "401", "403", "404", "403 csrf"
PLACES = {"platform": ("platform",), "tenant": ("tenant", "platform"), "project": ("project", "tenant", "platform")}
PLACES["node"] = ("node", "tenant", "platform")
READING = {"tenant": "tenancy.tenant.read", "project": "tenancy.project.read", "node": "capacity.node.read"}


@dataclass(frozen=True)
class Kind:
    """A kind of caller: its role, and the scope at which the role is bound.
    `at` is None if that scope does not contain the requested resource."""

    says: str
    role: str | None = None
    at: str | None = None
    dead: bool = False
    lent: frozenset[str] = frozenset()  # keys held temporarily, by a delegation or break-glass
    lent_at: str | None = None
    forged: bool = False  # a browser's cookie, sent from another site
    lives: str | None = None  # a service account acts only inside its own project: "here" or "elsewhere"


LENT = frozenset({"tenancy.project.read", "apps.instance.read", "apps.operation.retry"})
CALLERS: dict[str, Kind] = {
    "anonymous": Kind("not signed in", dead=True),
    "revoked_token": Kind("a project admin whose session was ended", dead=True),
    "disabled_user": Kind("a tenant admin who was disabled", dead=True),
    "disabled_service_account": Kind("a service account of the project that was disabled", dead=True),
    "other_tenant_admin": Kind("the admin of another tenant", "tenant_admin"),
    "other_project_admin": Kind("the admin of another project of the tenant", "project_admin"),
    "user_without_role": Kind("a user of the tenant without a role"),
    "platform_admin": Kind("a platform admin", "platform_admin", "platform"),
    "platform_ops": Kind("a platform operator", "platform_ops", "platform"),
    "tenant_admin": Kind("an admin of the tenant", "tenant_admin", "tenant"),
    "project_admin": Kind("an admin of the project", "project_admin", "project"),
    "project_member": Kind("a member of the project", "project_member", "project"),
    "project_viewer": Kind("a viewer of the project", "project_viewer", "project"),
    "app_operator": Kind("a person who operates apps in the project", "app_operator", "project"),
    "service_account": Kind("a service account of the project", "app_operator", "project", lives="here"),
    "other_service_account": Kind("a service account of another project", "app_operator", lives="elsewhere"),
    "overbound_service_account": Kind(
        "a service account of another project, bound to the whole tenant by mistake",
        "tenant_admin",
        "tenant",
        lives="elsewhere",
    ),
    "delegated": Kind(
        "a service account of another project with a delegation of a few keys",
        "app_operator",
        lent=LENT,
        lent_at="project",
        lives="elsewhere",
    ),
    "revoked_delegation": Kind(
        "a service account of another project whose delegation was revoked", "app_operator", lives="elsewhere"
    ),
    "retired_key": Kind("a service account of the project whose key was retired", dead=True),
    "break_glass_look": Kind(
        "a platform admin with a read-only break-glass",
        "platform_admin",
        "platform",
        lent=BREAK_GLASS["look"],
        lent_at="tenant",
    ),
    "break_glass_operate": Kind(
        "a platform admin with an approved break-glass to act",
        "platform_admin",
        "platform",
        lent=BREAK_GLASS["operate"],
        lent_at="tenant",
    ),
    "console": Kind("an admin of the project by console cookie, with the CSRF token", "project_admin", "project"),
    "forged_console": Kind("the same cookie, sent without the CSRF token", "project_admin", "project", forged=True),
    "node_agent": Kind("the agent of the requested node", "node_agent", "node"),
    "other_node_agent": Kind("the agent of another node of the tenant", "node_agent"),
}


def expected(kind: Kind, key: str, scope: str, method: str) -> str:
    if key == PUBLIC:
        return ALLOWED
    if kind.dead:
        return NO_ONE
    if kind.forged and method != "GET":
        return FORGED
    if scope == REACHABLE:  # the response has only what the caller may see, possibly nothing
        return ALLOWED
    scope = "project" if scope == "operation" else scope  # the requested operation belongs to the project
    covers = kind.at in PLACES[scope]
    held: frozenset[str] = ROLES[kind.role] if kind.role and covers else frozenset()
    if scope == "platform":
        return ALLOWED if key in held or key in EVERYBODY else REFUSED
    if kind.lives and (scope != "project" or kind.lives != "here"):
        held = frozenset()
    if kind.lent_at in PLACES[scope]:
        held = held | kind.lent
    if key in held or (key in EVERYBODY and READING[scope] in held):
        return ALLOWED
    return REFUSED if READING[scope] in held else UNSEEN


class RouteRow(TypedDict):
    route: str
    permission: str
    scope: str
    callers: dict[str, list[str]]  # by outcome


def access_matrix(app: FastAPI) -> Json:
    rows = sorted(
        (str(route.path), method, str(marks_of(route)["x-permission"]), str(marks_of(route)["x-scope"]))
        for route in api_routes(app)
        for method in route.methods or ()
    )
    routes = [_row(*row) for row in rows]
    counted = Counter({outcome: 0 for outcome in (ALLOWED, NO_ONE, REFUSED, UNSEEN, FORGED)})
    for row in routes:
        counted.update({outcome: len(names) for outcome, names in row["callers"].items()})
    return {
        "callers": {name: kind.says for name, kind in CALLERS.items()},
        "outcomes": {
            ALLOWED: "the request is processed",
            NO_ONE: "the caller is not authenticated",
            REFUSED: "visible but not permitted, and recorded",
            FORGED: "a change by cookie without a valid CSRF token",
            UNSEEN: "answered as if it did not exist",
        },
        "cells": dict(sorted(counted.items())),
        "routes": [_shown(row) for row in routes],
    }


def _row(path: str, method: str, key: str, scope: str) -> RouteRow:
    callers: dict[str, list[str]] = {}
    for name, kind in CALLERS.items():
        callers.setdefault(expected(kind, key, scope, method), []).append(name)
    return {"route": f"{method} {path}", "permission": key, "scope": scope, "callers": callers}


def _shown(row: RouteRow) -> Json:
    callers = {outcome: ", ".join(names) for outcome, names in row["callers"].items()}
    return {"route": row["route"], "permission": row["permission"], "scope": row["scope"], "callers": callers}
