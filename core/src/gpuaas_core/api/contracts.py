"""The contracts, generated from the code and committed: what an app team, the SDK and the console are built from."""

import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from .. import __version__
from ..access.permissions import BREAK_GLASS, EVERYBODY, NEEDS_APPROVAL, PERMISSIONS, ROLES, UNLENDABLE
from ..capacity.states import ALLOCATION, NODE
from ..catalog.manifest import SCHEMA
from ..edge.call import PUBLIC
from ..instances.states import INSTANCE, MEMBER, OPERATION
from ..kit.problems import CATALOGUE
from ..ledger.events import TYPES
from ..ledger.requests import KEY_PATTERN
from ..tenancy.states import BREAK_GLASS as GLASS
from .app import build_app, build_platform
from .matrix import access_matrix

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


def write_contracts(folder: Path, *, check: bool) -> list[str]:
    """Returns the names of the files that differ (with check) and otherwise writes them."""
    stale = []
    for name, text in all_contracts().items():
        path = folder / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return stale if check else []


def all_contracts() -> dict[str, str]:
    app = build_app(build_platform(None, None), loops=False)  # type: ignore[arg-type] - routes only, nothing runs
    documents = {
        "openapi.json": openapi(app),
        "asyncapi.json": asyncapi(),
        "permissions.json": _permissions(),
        "access-matrix.json": access_matrix(app),
        "errors.json": _errors(),
        "manifest.schema.json": SCHEMA,
    }
    texts = {name: json.dumps(document, indent=2, ensure_ascii=False) + "\n" for name, document in documents.items()}
    return texts | {"lifecycles.md": _lifecycles()}


def openapi(app: FastAPI) -> dict[str, Any]:
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
    if method == "post" and path not in _NO_KEY:
        header = {"name": "Idempotency-Key", "in": "header", "required": True}
        schema = {"type": "string", "pattern": KEY_PATTERN}
        operation.setdefault("parameters", []).append(header | {"schema": schema})


def asyncapi() -> dict[str, Any]:
    messages = {
        name: {"name": name, "summary": summary, "payload": {"$ref": "#/components/schemas/Event"}}
        for name, summary in sorted(TYPES.items())
    }
    refs = {name: {"$ref": f"#/components/messages/{name}"} for name in messages}
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
        "components": {"messages": messages, "schemas": {"Event": _event_schema()}},
    }


def _event_schema() -> dict[str, Any]:
    text = {"type": "string"}
    maybe = {"type": ["string", "null"]}
    carried = ("org_id", "project_id", "app_slug", "app_instance_id", "operating_mode", "control_plane_scope")
    data = {name: maybe for name in (*carried, "runtime_backend", "member_id", "operation_id")}
    fields = ("specversion", "id", "source", "type", "subject", "time", "datacontenttype", "correlationid", "traceid")
    return {
        "type": "object",
        "required": [*fields, "sequence", "data"],
        "properties": {name: text for name in fields}
        | {"sequence": {"type": "integer", "minimum": 1}}
        | {"data": {"type": "object", "properties": data, "required": ["org_id", "project_id"]}},
    }


def _permissions() -> dict[str, Any]:
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


def _errors() -> dict[str, Any]:
    return {
        code: {"status": kind.status, "title": kind.title, "way_out": kind.way_out, "retryable": kind.retryable}
        for code, kind in sorted(CATALOGUE.items())
    }


def _lifecycles() -> str:
    parts = ["# Lifecycles\n\nGenerated from the tables in the code; do not edit.\n"]
    for life in (INSTANCE, MEMBER, OPERATION, ALLOCATION, NODE, GLASS):
        parts.append(f"\n## {life.noun}\n\n```mermaid\n{life.mermaid()}```\n")
    return "".join(parts)
