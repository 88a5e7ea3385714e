"""Generates the page of permissions: each key with its meaning, the roles that have it, and the routes that need it."""

from collections.abc import Iterator

from fastapi import FastAPI

from ...api.app import api_routes, marks_of
from ...authz.permissions import BINDABLE, EVERYBODY, PERMISSIONS, ROLES, UNDENIABLE
from .markdown import code, item, paragraph, sentence, table

HEAD = """# Permissions

A permission key names one action. Every route requires exactly one key; otherwise the server does not start. Roles are
sets of keys, bound at the platform, a tenant or a project. A tenant can create its own roles, from keys that their
author has. How a decision is made: [who may do what](../how-it-works.md#who-may-do-what). Why it was made:
`gpuaas iam explain`.
"""

AREAS = {
    "identity": "Your own account",
    "platform": "The platform",
    "tenancy": "Tenants, projects, people",
    "iam": "Roles, rules, service accounts",
    "catalog": "Apps and entitlements",
    "capacity": "Nodes and allocations",
    "apps": "Instances and their operations",
    "ledger": "Events, audit, triage",
    "scheduler": "Schedulers run by apps",
}


def page(app: FastAPI) -> str:
    return HEAD + _roles() + _special() + "".join(_areas(_routes(app)))


def _roles() -> str:
    rows = [(f"`{role}`", _places(role), str(len(keys))) for role, keys in ROLES.items()]
    return "\n## Roles\n\n" + table(("role", "bound at", "keys"), rows)


def _places(role: str) -> str:
    order = ("platform", "tenant", "project")
    return ", ".join(place for place in order if place in BINDABLE.get(role, ())) or "its own node; cannot be granted"


def _special() -> str:
    return "\n" + paragraph(
        f"Every authenticated caller has {code(sorted(EVERYBODY))}. No deny rule removes {code(sorted(UNDENIABLE))}:"
        " a wrong rule must have a way out."
    )


def _routes(app: FastAPI) -> dict[str, list[str]]:
    asked: dict[str, list[str]] = {}
    for route in api_routes(app):
        key = str(marks_of(route)["x-permission"])
        asked.setdefault(key, []).extend(f"{method} {route.path}" for method in sorted(route.methods or ()))
    return {key: sorted(routes, key=lambda one: (one.split(" ")[1], one)) for key, routes in asked.items()}


def _areas(asked: dict[str, list[str]]) -> Iterator[str]:
    by_area: dict[str, list[str]] = {}
    for key in PERMISSIONS:
        by_area.setdefault(key.partition(".")[0], []).append(key)
    for area, keys in by_area.items():
        yield f"\n## {AREAS.get(area, area.capitalize())}\n\n"
        yield "".join(_entry(key, asked.get(key, [])) for key in sorted(keys))


def _entry(key: str, routes: list[str]) -> str:
    holders = [role for role, keys in ROLES.items() if key in keys]
    who = "every authenticated caller" if key in EVERYBODY else code(holders) or "no role"
    where = [f"`{route}`" for route in routes] or ["No route of the core: for apps, or checked inside another action."]
    return item(f"`{key}`: {sentence(PERMISSIONS[key])} Held by: {who}.", *where)
