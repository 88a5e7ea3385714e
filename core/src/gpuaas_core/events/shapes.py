"""The `data` fields of each event type, as tables for the AsyncAPI document, the reference page and a test.

A family is a prefix of event types; the longest matching prefix counts. A field with a question mark is optional. A
family lists the fields that readers may rely on: fields may be added, but none of these is removed.
"""

from ..kit.json_types import Json
from .event_log import IDENTIFIERS

TEXT: Json = {"type": "string"}
MAYBE: Json = {"type": ["string", "null"]}
WHOLE: Json = {"type": "integer", "minimum": 0}
MAYBE_WHOLE: Json = {"type": ["integer", "null"], "minimum": 0}
MAYBE_OBJECT: Json = {"type": ["object", "null"]}
NAMES: Json = {"type": "array", "items": TEXT}
ERROR: Json = {
    "type": "object",
    "required": ["code", "message", "way_out"],
    "properties": {"code": TEXT, "message": TEXT, "way_out": TEXT, "retryable": {"type": "boolean"}},
}

# In every event; null where it does not apply.
SHARED: dict[str, str] = {
    "correlation_id": "of the request that caused it: `gpuaas triage ID`",
    "org_id": "the tenant; null on the platform's own stream",
    "project_id": "the project, if it belongs to one",
    "app_slug": "the app",
    "app_instance_id": "the instance",
    "operating_mode": "`tenant_dedicated` or `platform_managed`",
    "control_plane_scope": "`project`, `tenant` or `platform`",
    "runtime_backend": "what the instance runs on",
}

FIELDS: dict[str, tuple[Json, str]] = {
    "address": (TEXT, "the node's address"),
    "artifact_id": (TEXT, "the artifact"),
    "artifact_version": (TEXT, "the artifact's version"),
    "approved_by": (MAYBE, "who approved it, if anyone"),
    "allocation_id": (TEXT, "the allocation"),
    "attempt": (WHOLE, "how often it was leased to the node"),
    "closed_by": (MAYBE, "who ended it, if anyone"),
    "authority_number": (WHOLE, "the SSH authority, counted from 1 per purpose"),
    "changed": (NAMES, "the fields that were changed"),
    "certificate_id": (TEXT, "the departure certificate"),
    "claim_epoch": (WHOLE, "how often the operation was claimed; 0 before the first claim"),
    "component_key": (TEXT, "the member's component in the app's manifest"),
    "credential_version": (WHOLE, "the version of the credential"),
    "delivery_id": (TEXT, "the delivery"),
    "digest": (TEXT, "the SHA-256 of the certificate's statement as canonical JSON"),
    "ended_sessions": (WHOLE, "how many other sessions ended with it"),
    "error": (ERROR, "why it failed, and what to do"),
    "expires_at": (MAYBE_WHOLE, "when it expires, if it does"),
    "fingerprint": (TEXT, "of the public key, as `ssh-keygen -l` shows it"),
    "grant_id": (TEXT, "the certificate's record"),
    "grantee_id": (TEXT, "the service account that may act"),
    "grantor_id": (TEXT, "on whose behalf"),
    "instance_name": (TEXT, "the instance's name"),
    "invited_by": (TEXT, "who invited"),
    "key_id": (TEXT, "the key"),
    "issuer": (TEXT, "the OpenID provider"),
    "kind": (TEXT, "of the operation, e.g. `deploy`, or of the task, e.g. `write_file`"),
    "max_allocations": (MAYBE_WHOLE, "how many allocations the project may hold; null: no limit"),
    "max_gpus": (MAYBE_WHOLE, "how many GPUs the project may hold; null: no limit"),
    "member_id": (TEXT, "the member"),
    "message": (TEXT, "a sentence for a person"),
    "mode": (TEXT, "`look` or `operate`"),
    "name": (TEXT, "its name"),
    "node_id": (TEXT, "the machine"),
    "node_name": (TEXT, "the node's name"),
    "of": (WHOLE, "the number of steps; 0 while unknown"),
    "opened_by": (TEXT, "who requested it"),
    "operation_id": (TEXT, "the operation that did it"),
    "origin": (TEXT, "`generated`, `provided` or `imported`"),
    "orphan_id": (TEXT, "the orphan record"),
    "overlay": (MAYBE_OBJECT, "what it restricts, if anything"),
    "permissions": (NAMES, "permission keys"),
    "phase": (TEXT, "where the operation is, for grouping steps"),
    "pool": (MAYBE, "the pool it is in now, if in one"),
    "principal_id": (TEXT, "who holds it"),
    "project": (MAYBE, "the project invited to, if one"),
    "provider_id": (TEXT, "the identity provider as the tenant set it up"),
    "purpose": (TEXT, "`user`: signs logins; `host`: signs host keys"),
    "reason": (TEXT, "why, as given by the actor"),
    "revision": (WHOLE, "how often it was written"),
    "rules": (MAYBE_OBJECT, "its allow-lists and deny-lists"),
    "role": (TEXT, "the role"),
    "roles": (NAMES, "its roles"),
    "scope_id": (TEXT, "where the role is held"),
    "scope_kind": (TEXT, "`tenant` or `project`"),
    "secret_version": (WHOLE, "the version of the secret"),
    "sha256": (TEXT, "the SHA-256 of the content"),
    "size_bytes": (WHOLE, "the size of the content"),
    "slug": (TEXT, "its short name"),
    "source": (TEXT, "the artifact source's name in policies"),
    "source_kind": (TEXT, "`oci`, `blob` or `store`"),
    "state": (TEXT, "the state it is in now"),
    "status": (TEXT, "the operation's status now"),
    "step": (WHOLE, "the step it is at"),
    "subject": (MAYBE, "what it is for, e.g. a runtime, if it is for one thing"),
    "task_id": (MAYBE, "the task, if it is about one"),
    "ticket": (TEXT, "reference to the support case"),
    "user_id": (TEXT, "the person"),
    "version": (TEXT, "the app's version"),
}

FAMILIES: dict[str, tuple[str, str]] = {
    "tenancy.tenant.": ("Tenants", "slug"),
    "tenancy.project.": ("Projects", "slug"),
    "tenancy.user.": ("People", ""),
    "tenancy.user.password_changed": ("People", "ended_sessions"),
    "tenancy.session.": ("People", ""),
    "tenancy.invitation.created": ("Invitations", "role? project"),
    "tenancy.invitation.revoked": ("Invitations", ""),
    "tenancy.invitation.accepted": ("Invitations", "user_id invited_by"),
    "tenancy.identity.": ("People", "provider_id issuer"),
    "tenancy.identity_provider.": ("Identity providers", "issuer? changed?"),
    "tenancy.binding.": ("Roles and rules", "principal_id role scope_kind scope_id"),
    "tenancy.role.": ("Roles and rules", "name permissions?"),
    "tenancy.deny.": ("Roles and rules", "permissions reason?"),
    "tenancy.delegation.": ("Delegations", "grantor_id grantee_id permissions? reason? subject?"),
    "tenancy.break_glass.": ("Break-glass", "mode reason ticket opened_by approved_by closed_by"),
    "tenancy.service_account.": ("Service accounts and their keys", "name roles?"),
    "tenancy.service_account.key_": ("Service accounts and their keys", "key_id"),
    "catalog.app.": ("Apps", ""),
    "catalog.version.": ("Apps", "version"),
    "catalog.entitlement.": ("Entitlements", ""),
    "catalog.entitlement.enabled": ("Entitlements", "expires_at overlay"),
    "policy.": ("Policies", "name revision? rules? reason?"),
    "capacity.enrolment.": ("Nodes", "node_name address?"),
    "capacity.node.": ("Nodes", "node_name address? state? reason?"),
    "capacity.node.pooled": ("Nodes", "node_name pool"),
    "capacity.task.": ("Tasks of nodes", "task_id node_id kind state attempt message allocation_id? operation_id?"),
    "capacity.node.certified": ("Nodes", "node_name expires_at"),
    "capacity.region.": ("Regions, SKUs and pools", "name"),
    "capacity.sku.": ("Regions, SKUs and pools", "name"),
    "capacity.pool.": ("Regions, SKUs and pools", "name"),
    "capacity.quota.": ("Quotas", "max_allocations max_gpus"),
    "capacity.allocation.": ("Allocations", "allocation_id node_id expires_at? reason?"),
    "artifacts.source.": ("Artifacts", "name source source_kind state reason?"),
    "artifacts.artifact.": ("Artifacts", "name artifact_version source state sha256 size_bytes reason?"),
    "artifacts.content.": ("Artifacts", "sha256 size_bytes"),
    "artifacts.delivery.": ("Artifacts", "delivery_id artifact_id node_id task_id sha256 size_bytes"),
    "apps.instance.": ("Instances", "instance_name operation_id state"),
    "apps.instance.abandoned": ("Instances", "instance_name operation_id reason"),
    "apps.member.": ("Members", "instance_name member_id component_key state? operation_id? allocation_id? reason?"),
    "apps.orphan.": ("Orphan records", "instance_name orphan_id node_id member_id? allocation_id? reason?"),
    "apps.departure.": ("Departures", "instance_name operation_id certificate_id allocation_id node_id digest"),
    "apps.operation.": (
        "Operations",
        "instance_name operation_id kind status phase step of message claim_epoch member_id? error?",
    ),
    "apps.operation.stuck": ("Operations", "instance_name operation_id kind reason"),
    "apps.operation.unstuck": ("Operations", "instance_name operation_id kind reason"),
    "apps.secret.": ("Runtime secrets", "instance_name name secret_version? origin? operation_id? claim_epoch?"),
    "custody.credential.": ("Access credentials", "name state credential_version fingerprint origin"),
    "custody.credential.rotation_started": (
        "Access credentials",
        "name state credential_version fingerprint origin expires_at",
    ),
    "custody.credential.revoked": ("Access credentials", "name state credential_version fingerprint origin reason"),
    "custody.credential.bound": ("Access credentials", "name state credential_version fingerprint instance_name"),
    "custody.credential.unbound": ("Access credentials", "name state credential_version fingerprint instance_name"),
    "custody.credential.delivered": (
        "Access credentials",
        "name state credential_version fingerprint instance_name operation_id claim_epoch",
    ),
    "custody.credential.redelivery_refused": (
        "Access credentials",
        "name state credential_version fingerprint instance_name operation_id claim_epoch",
    ),
    "custody.authority.": ("SSH authorities", "purpose authority_number fingerprint"),
    "custody.access.": ("Node access", "operation_id allocation_id grant_id claim_epoch reason"),
    "apps.access.": ("Node access", "instance_name operation_id allocation_id grant_id claim_epoch"),
    "apps.access.opened": (
        "Machine access",
        "instance_name operation_id allocation_id grant_id claim_epoch member_id component_key",
    ),
}
# In these events no identifier is null, so that an investigation needs no join.
ABOUT_AN_APP = "apps."


class Undescribed(Exception):
    """The event type belongs to no family. Add the type to `FAMILIES` in events/shapes.py."""


def family(type: str) -> str:
    fitting = [start for start in FAMILIES if type.startswith(start)]
    if not fitting:
        raise Undescribed(f"{type} has no family in events/shapes.py: add its fields there.")
    return max(fitting, key=len)


def fields(start: str) -> dict[str, bool]:
    """Return the fields of a family, each with True if it is required and False if it is optional."""
    return {word.rstrip("?"): not word.endswith("?") for word in FAMILIES[start][1].split()}


def data_schema(start: str) -> Json:
    known: dict[str, Json] = {name: TEXT if _always(start, name) else MAYBE for name in IDENTIFIERS}
    own = fields(start)
    known |= {name: FIELDS[name][0] for name in own}
    required = [*IDENTIFIERS, *(name for name, always in own.items() if always)]
    return {"type": "object", "required": required, "properties": known}


def _always(start: str, name: str) -> bool:
    """Return whether this identifier is never null in the events of the family."""
    return name == "correlation_id" or start.startswith(ABOUT_AN_APP)
