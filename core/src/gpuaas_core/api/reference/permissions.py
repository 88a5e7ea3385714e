"""The permission reference: every key, what it allows, who holds it, and where it is asked for."""

from collections.abc import Iterator

from fastapi import FastAPI

from ...access.permissions import BINDABLE, EVERYBODY, PERMISSIONS, ROLES, UNDENIABLE
from ..app import api_routes
from .markdown import code, sentence, table

HEAD = """# Permissions

A permission key names one thing somebody may do. Every route asks for exactly one; the server does not start
otherwise. Roles are sets of keys, held at the platform, a tenant or a project. A tenant can make roles of its own
from keys its maker holds. How a decision is made: [who may do what](../how-it-works.md#who-may-do-what). Why it was
made: `gpuaas iam explain`.
"""

AREAS = {
    "identity": "Oneself",
    "platform": "The platform",
    "tenancy": "Tenants, projects, people",
    "iam": "Roles, rules, service accounts",
    "catalog": "Apps and entitlements",
    "capacity": "Machines and allocations",
    "apps": "Instances and their operations",
    "ledger": "Events, audit, triage",
    "scheduler": "Schedulers run by apps",
}


def page(app: FastAPI) -> str:
    return HEAD + _roles() + _special() + "".join(_areas(_routes(app)))


def _roles() -> str:
    rows = [(f"`{role}`", _places(role), str(len(keys))) for role, keys in ROLES.items()]
    return "\n## Roles\n\n" + table(("role", "held at", "keys"), rows)


def _places(role: str) -> str:
    order = ("platform", "tenant", "project")
    return ", ".join(place for place in order if place in BINDABLE.get(role, ())) or "its own machine, never handed out"


def _special() -> str:
    return (
        f"\nEverybody who is signed in holds {code(sorted(EVERYBODY))}. No deny rule takes away"
        f" {code(sorted(UNDENIABLE))}: a wrong rule must have a way out.\n"
    )


def _routes(app: FastAPI) -> dict[str, list[str]]:
    asked: dict[str, list[str]] = {}
    for route in api_routes(app):
        key = (route.openapi_extra or {})["x-permission"]
        asked.setdefault(key, []).extend(f"{method} {route.path}" for method in sorted(route.methods or ()))
    return {key: sorted(routes, key=lambda one: (one.split(" ")[1], one)) for key, routes in asked.items()}


def _areas(asked: dict[str, list[str]]) -> Iterator[str]:
    by_area: dict[str, list[str]] = {}
    for key in PERMISSIONS:
        by_area.setdefault(key.partition(".")[0], []).append(key)
    for area, keys in by_area.items():
        yield f"\n## {AREAS.get(area, area.capitalize())}\n\n"
        yield table(
            ("key", "allows to", "held by", "asked for by"), (_row(key, asked.get(key, [])) for key in sorted(keys))
        )


def _row(key: str, routes: list[str]) -> tuple[str, ...]:
    holders = [role for role, keys in ROLES.items() if key in keys]
    who = "everybody" if key in EVERYBODY else ", ".join(holders)
    where = "<br>".join(f"`{route}`" for route in routes)
    return f"`{key}`", sentence(PERMISSIONS[key]), who, where or "no route of the core: for apps, or inside another act"
