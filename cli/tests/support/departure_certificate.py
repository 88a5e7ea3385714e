"""A departure certificate as the platform writes it, for the tests of the CLI."""

from __future__ import annotations

import hashlib
import json
from typing import Any

AT = "2026-11-15T00:00:00.000Z"


def departure(**more: Any) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "format": 1,
        "certificate_id": "dep_1",
        "issued_at": AT,
        "org_id": "ten_1",
        "project_id": "prj_1",
        "host": {"node_id": "node_1", "name": "node-a", "address": "10.0.0.9", "allocation_id": "alloc_1"},
        "instance": {"id": "inst_1", "name": "train", "app_slug": "slurm", "version": "1.0.0"},
        "members": [{"id": "mem_1", "component_key": "controller", "ordinal": 0}],
        "operation": {
            "id": "op_1",
            "kind": "decommission",
            "requested_by": "usr_1",
            "requested_at": AT,
            "controller": "slurm-1",
            "correlation_id": "cor-of-op",
        },
        "checks": [{"check": "key", "ok": True, "detail": "the key is gone"}],
        "evidence": {"host": "node-a", "été": 1.5},
    }
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    view = {
        "id": "dep_1",
        "instance_id": "inst_1",
        "operation_id": "op_1",
        "allocation_id": "alloc_1",
        "node_id": "node_1",
        "statement": statement,
        "digest": "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
        "access": {"open_grants": 0, "grants_not_yet_refused": 0},
        "issued_at": AT,
    }
    return view | more
