"""Generates the contracts from the code. They are committed, and used by app teams, the SDK and the console.

`contracts/` is machine-readable, `docs/reference/` has the same content for people.
"""

import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from .. import __version__
from ..api.app import build_app, build_platform
from ..authz.permissions import BREAK_GLASS, EVERYBODY, NEEDS_APPROVAL, PERMISSIONS, ROLES, UNLENDABLE
from ..catalog.manifest import SCHEMA
from ..events.event_log import IDENTIFIERS, TYPES
from ..events.shapes import FAMILIES, MAYBE, TEXT, data_schema, family
from ..http.call import KEYLESS, PUBLIC
from ..idempotency.requests import KEY_PATTERN
from ..kit.json_types import Json
from ..kit.problems import CATALOGUE
from ..node_tasks import kinds
from . import adapter_detail, facts
from .matrix import access_matrix
from .reference import pages

_PROBLEM = {
    "type": "object",
    "required": [
        "type",
        "title",
        "status",
        "detail",
        "code",
        "way_out",
        "correlation_id",
        "trace_id",
        "retryable",
        "errors",
    ],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "way_out": {"type": "string"},
        "correlation_id": {"type": "string"},
        "trace_id": {"type": "string"},
        "retryable": {"type": "boolean"},
        "retry_after_s": {"type": "integer"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"pointer": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
_NO_KEY = {"/v1/sign-in", "/v1/token", "/v1/enrol", "/v1/invitations/accept", "/v1/auth/session", "/v1/auth/oidc/token"}


def write_contracts(folder: Path, docs: Path, *, check: bool) -> list[str]:
    """Write the files that are not up to date and return an empty list;
    with `check` write nothing and return their names."""
    app = _routes_only()
    wanted = {folder / name: text for name, text in all_contracts(app).items()}
    wanted |= {docs / name: text for name, text in pages(app).items()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if check:
        return [path.name for path in stale]
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
    return []


def _routes_only() -> FastAPI:
    return build_app(build_platform(None, None), loops=False)  # type: ignore[arg-type] - nothing runs


def all_contracts(app: FastAPI | None = None) -> dict[str, str]:
    app = app or _routes_only()
    documents = {
        "openapi.json": openapi(app),
        "asyncapi.json": asyncapi(),
        "permissions.json": _permissions(),
        "access-matrix.json": access_matrix(app),
        "errors.json": _errors(),
        "actions.json": facts.actions(app),
        "lifecycles.json": facts.lifecycles(),
        "events.json": facts.events(app),
        "adapter-detail.schema.json": adapter_detail.schema(),
        "manifest.schema.json": SCHEMA,
        "node-tasks.json": kinds.contract(),
    }
    return {name: json.dumps(document, indent=2, ensure_ascii=False) + "\n" for name, document in documents.items()}


def openapi(app: FastAPI) -> Json:
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = _PROBLEM
    document["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _finish(path, method, operation)
    return document


def _finish(path: str, method: str, operation: dict[str, Any]) -> None:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    operation["responses"].pop("422", None)
    operation["responses"]["default"] = {
        "description": "A problem document (RFC 9457).",
        "content": {"application/problem+json": problem},
    }
    if operation["x-permission"] != PUBLIC:
        operation["security"] = [{"bearer": []}]
    if method == "post" and path not in _NO_KEY and KEYLESS not in operation:
        header = {"name": "Idempotency-Key", "in": "header", "required": True}
        schema = {"type": "string", "pattern": KEY_PATTERN}
        operation.setdefault("parameters", []).append(header | {"schema": schema})


def asyncapi() -> Json:
    messages = {
        name: {"name": name, "summary": summary, "payload": _payload(name)} for name, summary in sorted(TYPES.items())
    }
    refs = {name: {"$ref": f"#/components/messages/{name}"} for name in messages}
    families = {_family_name(start): data_schema(start) for start in sorted(FAMILIES)}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "GPUaaS events", "version": __version__},
        "channels": {
            "tenantEvents": {"address": "/v1/tenants/{tenant_id}/events/stream", "messages": refs},
            "projectEvents": {"address": "/v1/projects/{project_id}/events/stream", "messages": refs},
        },
        "operations": {
            "followTenant": {"action": "send", "channel": {"$ref": "#/channels/tenantEvents"}},
            "followProject": {"action": "send", "channel": {"$ref": "#/channels/projectEvents"}},
        },
        "components": {"messages": messages, "schemas": {"Event": _event_schema()} | families},
    }


def _payload(name: str) -> Json:
    """Return the schema of an event: the common `Event`, with the data fields of the event's type."""
    data = {"$ref": f"#/components/schemas/{_family_name(family(name))}"}
    own = {"properties": {"type": {"const": name}, "data": data}}
    return {"allOf": [{"$ref": "#/components/schemas/Event"}, own]}


def _family_name(start: str) -> str:
    return start.rstrip("._")


def _event_schema() -> Json:
    fields = ("specversion", "id", "source", "type", "subject", "time", "datacontenttype", "correlationid", "traceid")
    data = {name: MAYBE for name in IDENTIFIERS}
    return {
        "type": "object",
        "required": [*fields, "sequence", "data"],
        "properties": {name: TEXT for name in fields}
        | {"sequence": {"type": "integer", "minimum": 1}}
        | {"data": {"type": "object", "properties": data, "required": [*IDENTIFIERS]}},
    }


def _permissions() -> Json:
    return {
        "permissions": PERMISSIONS,
        "everybody": sorted(EVERYBODY),
        "unlendable": sorted(UNLENDABLE),
        "break_glass": {
            mode: {"needs_approval": mode in NEEDS_APPROVAL, "permissions": sorted(keys)}
            for mode, keys in BREAK_GLASS.items()
        },
        "roles": {role: sorted(keys) for role, keys in ROLES.items()},
    }


def _errors() -> Json:
    return {
        code: {"status": kind.status, "title": kind.title, "way_out": kind.way_out, "retryable": kind.retryable}
        for code, kind in sorted(CATALOGUE.items())
    }
