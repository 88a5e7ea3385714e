// Generated from contracts/actions.json, lifecycles.json, events.json, permissions.json and errors.json by `make console`.

export const ACTIONS = {
  "instance": {
    "decommission": {
      "permission": "apps.instance.decommission",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/decommission",
      "states": [
        "requested",
        "provisioning",
        "running",
        "stopping",
        "stopped",
        "starting",
        "updating",
        "upgrading",
        "failed"
      ]
    },
    "stop": {
      "permission": "apps.instance.operate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/stop",
      "states": [
        "running"
      ]
    },
    "start": {
      "permission": "apps.instance.operate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/start",
      "states": [
        "stopped"
      ]
    },
    "restart": {
      "permission": "apps.instance.operate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/restart",
      "states": [
        "running"
      ]
    },
    "update": {
      "permission": "apps.instance.update",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/update",
      "states": [
        "running",
        "failed"
      ]
    },
    "rotate_keys": {
      "permission": "apps.instance.rotate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/rotate-keys",
      "states": [
        "running"
      ]
    },
    "upgrade": {
      "permission": "apps.instance.upgrade",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/upgrade",
      "states": [
        "running"
      ]
    },
    "rollback": {
      "permission": "apps.instance.upgrade",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/rollback",
      "states": [
        "running",
        "failed"
      ]
    },
    "retry": {
      "permission": "apps.operation.retry",
      "method": "POST",
      "path": "/v1/projects/{project_id}/operations/{operation_id}/retry",
      "states": [
        "failed",
        "deleting"
      ]
    },
    "add_{component}": {
      "permission": "apps.member.add",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/members",
      "states": [
        "running"
      ]
    }
  },
  "member": {
    "drain": {
      "permission": "apps.member.operate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}/drain",
      "states": [
        "ready",
        "draining"
      ]
    },
    "undrain": {
      "permission": "apps.member.operate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}/undrain",
      "states": [
        "drained"
      ]
    },
    "restart": {
      "permission": "apps.member.operate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}/restart",
      "states": [
        "ready"
      ]
    },
    "remove": {
      "permission": "apps.member.remove",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}/remove",
      "states": [
        "ready",
        "drained",
        "failed"
      ]
    },
    "replace": {
      "permission": "apps.member.remove",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}/replace",
      "states": [
        "pending",
        "provisioning",
        "ready",
        "draining",
        "drained",
        "failed"
      ]
    },
    "retry": {
      "permission": "apps.member.operate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}/retry",
      "states": [
        "ready",
        "drained",
        "failed"
      ]
    },
    "tombstone": {
      "permission": "apps.operation.abandon",
      "method": "POST",
      "path": "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}/tombstone",
      "states": [
        "failed"
      ]
    }
  },
  "operation": {
    "retry": {
      "permission": "apps.operation.retry",
      "method": "POST",
      "path": "/v1/projects/{project_id}/operations/{operation_id}/retry",
      "states": [
        "failed",
        "needs_attention",
        "canceled"
      ]
    },
    "cancel": {
      "permission": "apps.operation.cancel",
      "method": "POST",
      "path": "/v1/projects/{project_id}/operations/{operation_id}/cancel",
      "states": [
        "queued",
        "running"
      ]
    },
    "release_claim": {
      "permission": "apps.operation.release",
      "method": "POST",
      "path": "/v1/projects/{project_id}/operations/{operation_id}/release-claim",
      "states": [
        "running"
      ]
    },
    "abandon": {
      "permission": "apps.operation.abandon",
      "method": "POST",
      "path": "/v1/projects/{project_id}/operations/{operation_id}/abandon",
      "states": [
        "queued",
        "running",
        "failed",
        "needs_attention",
        "canceled"
      ]
    }
  },
  "node": {
    "retire": {
      "permission": "capacity.node.retire",
      "method": "POST",
      "path": "/v1/nodes/{node_id}/retire",
      "states": [
        "enrolling",
        "draining",
        "unknown",
        "lost",
        "suspended"
      ]
    },
    "readmit": {
      "permission": "capacity.node.readmit",
      "method": "POST",
      "path": "/v1/nodes/{node_id}/readmit",
      "states": [
        "enrolling",
        "ready",
        "cordoned",
        "draining",
        "unknown",
        "lost",
        "suspended"
      ]
    },
    "cordon": {
      "permission": "capacity.node.cordon",
      "method": "POST",
      "path": "/v1/nodes/{node_id}/cordon",
      "states": [
        "ready",
        "unknown",
        "lost"
      ]
    },
    "drain": {
      "permission": "capacity.node.drain",
      "method": "POST",
      "path": "/v1/nodes/{node_id}/drain",
      "states": [
        "ready",
        "cordoned",
        "unknown",
        "lost"
      ]
    },
    "uncordon": {
      "permission": "capacity.node.uncordon",
      "method": "POST",
      "path": "/v1/nodes/{node_id}/uncordon",
      "states": [
        "cordoned",
        "draining",
        "unknown",
        "lost"
      ]
    }
  },
  "allocation": {
    "release": {
      "permission": "capacity.allocation.release",
      "method": "POST",
      "path": "/v1/projects/{project_id}/allocations/{allocation_id}/release",
      "states": [
        "requested",
        "active"
      ]
    },
    "extend": {
      "permission": "capacity.allocation.extend",
      "method": "POST",
      "path": "/v1/projects/{project_id}/allocations/{allocation_id}/extend",
      "states": [
        "requested",
        "active"
      ]
    }
  },
  "credential": {
    "bind": {
      "permission": "custody.credential.bind",
      "method": "POST",
      "path": "/v1/projects/{project_id}/credentials/{credential_id}/bind",
      "states": [
        "active",
        "rotating"
      ]
    },
    "rotate": {
      "permission": "custody.credential.rotate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/credentials/{credential_id}/rotate",
      "states": [
        "active"
      ]
    },
    "revoke": {
      "permission": "custody.credential.revoke",
      "method": "POST",
      "path": "/v1/projects/{project_id}/credentials/{credential_id}/revoke",
      "states": [
        "active",
        "rotating"
      ]
    },
    "complete_rotation": {
      "permission": "custody.credential.rotate",
      "method": "POST",
      "path": "/v1/projects/{project_id}/credentials/{credential_id}/complete-rotation",
      "states": [
        "rotating"
      ]
    }
  },
  "app_version": {
    "publish": {
      "permission": "catalog.version.publish",
      "method": "POST",
      "path": "/v1/apps/{app_slug}/versions/{version}/publish",
      "states": [
        "draft",
        "published",
        "deprecated"
      ]
    },
    "withdraw": {
      "permission": "catalog.version.withdraw",
      "method": "POST",
      "path": "/v1/apps/{app_slug}/versions/{version}/withdraw",
      "states": [
        "draft",
        "published",
        "deprecated"
      ]
    },
    "deprecate": {
      "permission": "catalog.version.deprecate",
      "method": "POST",
      "path": "/v1/apps/{app_slug}/versions/{version}/deprecate",
      "states": [
        "published"
      ]
    }
  }
} as const;

export const STATES = {
  "instance": {
    "live": [
      "requested",
      "provisioning",
      "running",
      "stopping",
      "stopped",
      "starting",
      "updating",
      "upgrading",
      "failed",
      "deleting"
    ],
    "terminal": [
      "deleted"
    ]
  },
  "member": {
    "live": [
      "pending",
      "provisioning",
      "ready",
      "draining",
      "drained",
      "removing",
      "failed"
    ],
    "terminal": [
      "removed"
    ]
  },
  "operation": {
    "live": [
      "queued",
      "running"
    ],
    "terminal": [
      "succeeded",
      "failed",
      "canceled",
      "superseded",
      "needs_attention"
    ]
  },
  "allocation": {
    "live": [
      "requested",
      "active",
      "releasing"
    ],
    "terminal": [
      "released"
    ]
  },
  "node": {
    "live": [
      "enrolling",
      "ready",
      "cordoned",
      "draining",
      "unknown",
      "lost",
      "suspended"
    ],
    "terminal": [
      "retired"
    ]
  },
  "task": {
    "live": [
      "queued",
      "leased",
      "running"
    ],
    "terminal": [
      "succeeded",
      "failed",
      "refused",
      "interrupted",
      "expired",
      "canceled"
    ]
  },
  "app_version": {
    "live": [
      "draft",
      "published",
      "deprecated"
    ],
    "terminal": [
      "withdrawn"
    ]
  },
  "credential": {
    "live": [
      "active",
      "rotating"
    ],
    "terminal": [
      "revoked"
    ]
  },
  "ssh_authority": {
    "live": [
      "next",
      "active",
      "retiring"
    ],
    "terminal": [
      "retired"
    ]
  },
  "artifact_source": {
    "live": [
      "enabled",
      "disabled"
    ],
    "terminal": [
      "removed"
    ]
  },
  "artifact": {
    "live": [
      "registered"
    ],
    "terminal": [
      "withdrawn"
    ]
  },
  "delivery": {
    "live": [
      "offered"
    ],
    "terminal": [
      "received",
      "ended"
    ]
  },
  "break_glass": {
    "live": [
      "awaiting_approval",
      "active"
    ],
    "terminal": [
      "closed",
      "expired"
    ]
  }
} as const;

export const EVENTS = {
  "apps.access.granted": [
    "access_grant",
    "departure_certificate",
    "event"
  ],
  "apps.access.opened": [
    "access_grant",
    "departure_certificate",
    "event"
  ],
  "apps.departure.certified": [
    "departure_certificate",
    "event"
  ],
  "apps.instance.abandoned": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.deleted": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.deleting": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.failed": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.provisioning": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.requested": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.running": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.starting": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.stopped": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.stopping": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.updated": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.updating": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.instance.upgrading": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.member.abandoned": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.member.added": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.member.changed": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.member.fenced": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.member.removed": [
    "allocation",
    "event",
    "instance",
    "member"
  ],
  "apps.operation.cancel_requested": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.canceled": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.claimed": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.failed": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.needs_attention": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.progressed": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.queued": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.released": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.stuck": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.succeeded": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.superseded": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.operation.unstuck": [
    "event",
    "instance",
    "member",
    "operation"
  ],
  "apps.orphan.recorded": [
    "event",
    "node",
    "orphan"
  ],
  "apps.orphan.resolved": [
    "event",
    "node",
    "orphan"
  ],
  "apps.secret.deleted": [
    "event",
    "secret"
  ],
  "apps.secret.delivered": [
    "event",
    "secret"
  ],
  "apps.secret.issued": [
    "event",
    "secret"
  ],
  "apps.secret.redelivery_refused": [
    "event",
    "secret"
  ],
  "artifacts.artifact.registered": [
    "artifact",
    "event"
  ],
  "artifacts.artifact.withdrawn": [
    "artifact",
    "event"
  ],
  "artifacts.content.pushed": [
    "artifact",
    "event"
  ],
  "artifacts.delivery.ended": [
    "artifact",
    "event"
  ],
  "artifacts.delivery.offered": [
    "artifact",
    "event"
  ],
  "artifacts.delivery.received": [
    "artifact",
    "event"
  ],
  "artifacts.source.created": [
    "artifact",
    "artifact_source",
    "event"
  ],
  "artifacts.source.credential_set": [
    "artifact",
    "artifact_source",
    "event"
  ],
  "artifacts.source.disabled": [
    "artifact",
    "artifact_source",
    "event"
  ],
  "artifacts.source.enabled": [
    "artifact",
    "artifact_source",
    "event"
  ],
  "artifacts.source.removed": [
    "artifact",
    "artifact_source",
    "event"
  ],
  "capacity.allocation.active": [
    "allocation",
    "event",
    "node",
    "quota"
  ],
  "capacity.allocation.extended": [
    "allocation",
    "event",
    "node",
    "quota"
  ],
  "capacity.allocation.integrated": [
    "allocation",
    "event",
    "node",
    "quota"
  ],
  "capacity.allocation.overdue": [
    "allocation",
    "event",
    "node",
    "quota"
  ],
  "capacity.allocation.released": [
    "allocation",
    "event",
    "node",
    "quota"
  ],
  "capacity.allocation.releasing": [
    "allocation",
    "event",
    "node",
    "quota"
  ],
  "capacity.allocation.requested": [
    "allocation",
    "event",
    "node",
    "quota"
  ],
  "capacity.allocation.wipe_failed": [
    "allocation",
    "event",
    "node",
    "quota"
  ],
  "capacity.allocation.wiped": [
    "allocation",
    "event",
    "node",
    "quota"
  ],
  "capacity.enrolment.created": [
    "event",
    "node"
  ],
  "capacity.enrolment.refused": [
    "event",
    "node"
  ],
  "capacity.node.certified": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.cordoned": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.draining": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.enrolled": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.lost": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.pooled": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.readmitted": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.ready": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.rejoined": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.retired": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.retold": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.suspended": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.node.unknown": [
    "allocation",
    "event",
    "node"
  ],
  "capacity.pool.created": [
    "event",
    "pool"
  ],
  "capacity.pool.deleted": [
    "event",
    "pool"
  ],
  "capacity.quota.set": [
    "event",
    "quota"
  ],
  "capacity.region.created": [
    "event",
    "region"
  ],
  "capacity.region.deleted": [
    "event",
    "region"
  ],
  "capacity.sku.created": [
    "event",
    "sku"
  ],
  "capacity.sku.deleted": [
    "event",
    "sku"
  ],
  "capacity.task.canceled": [
    "event",
    "task"
  ],
  "capacity.task.expired": [
    "event",
    "task"
  ],
  "capacity.task.failed": [
    "event",
    "task"
  ],
  "capacity.task.interrupted": [
    "event",
    "task"
  ],
  "capacity.task.queued": [
    "event",
    "task"
  ],
  "capacity.task.refused": [
    "event",
    "task"
  ],
  "capacity.task.running": [
    "event",
    "task"
  ],
  "capacity.task.succeeded": [
    "event",
    "task"
  ],
  "catalog.app.created": [
    "app",
    "catalog",
    "event"
  ],
  "catalog.entitlement.disabled": [
    "catalog",
    "entitlement",
    "event"
  ],
  "catalog.entitlement.enabled": [
    "catalog",
    "entitlement",
    "event"
  ],
  "catalog.entitlement.expired": [
    "catalog",
    "entitlement",
    "event"
  ],
  "catalog.version.created": [
    "app",
    "app_version",
    "catalog",
    "event"
  ],
  "catalog.version.deprecated": [
    "app",
    "app_version",
    "catalog",
    "event"
  ],
  "catalog.version.published": [
    "app",
    "app_version",
    "catalog",
    "event"
  ],
  "catalog.version.withdrawn": [
    "app",
    "app_version",
    "catalog",
    "event"
  ],
  "custody.access.revoked": [
    "access_grant",
    "departure_certificate",
    "event"
  ],
  "custody.authority.activated": [
    "event",
    "node",
    "ssh_authority"
  ],
  "custody.authority.retired": [
    "event",
    "node",
    "ssh_authority"
  ],
  "custody.authority.rotation_started": [
    "event",
    "node",
    "ssh_authority"
  ],
  "custody.credential.bound": [
    "credential",
    "event"
  ],
  "custody.credential.created": [
    "credential",
    "event"
  ],
  "custody.credential.delivered": [
    "credential",
    "event"
  ],
  "custody.credential.imported": [
    "credential",
    "event"
  ],
  "custody.credential.redelivery_refused": [
    "credential",
    "event"
  ],
  "custody.credential.revoked": [
    "credential",
    "event"
  ],
  "custody.credential.rotation_completed": [
    "credential",
    "event"
  ],
  "custody.credential.rotation_started": [
    "credential",
    "event"
  ],
  "custody.credential.unbound": [
    "credential",
    "event"
  ],
  "policy.platform.removed": [
    "catalog",
    "event",
    "policy"
  ],
  "policy.platform.set": [
    "catalog",
    "event",
    "policy"
  ],
  "policy.project.removed": [
    "catalog",
    "event",
    "policy"
  ],
  "policy.project.set": [
    "catalog",
    "event",
    "policy"
  ],
  "policy.tenant.removed": [
    "catalog",
    "event",
    "policy"
  ],
  "policy.tenant.set": [
    "catalog",
    "event",
    "policy"
  ],
  "tenancy.binding.created": [
    "event",
    "permission",
    "project",
    "role_binding",
    "service_account"
  ],
  "tenancy.binding.removed": [
    "event",
    "permission",
    "project",
    "role_binding",
    "service_account"
  ],
  "tenancy.break_glass.closed": [
    "break_glass",
    "event",
    "permission"
  ],
  "tenancy.break_glass.expired": [
    "break_glass",
    "event",
    "permission"
  ],
  "tenancy.break_glass.opened": [
    "break_glass",
    "event",
    "permission"
  ],
  "tenancy.break_glass.requested": [
    "break_glass",
    "event",
    "permission"
  ],
  "tenancy.delegation.created": [
    "delegation",
    "event",
    "permission"
  ],
  "tenancy.delegation.revoked": [
    "delegation",
    "event",
    "permission"
  ],
  "tenancy.deny.created": [
    "deny_rule",
    "event",
    "permission"
  ],
  "tenancy.deny.removed": [
    "deny_rule",
    "event",
    "permission"
  ],
  "tenancy.identity.linked": [
    "event",
    "user"
  ],
  "tenancy.identity_provider.created": [
    "event",
    "identity_provider"
  ],
  "tenancy.identity_provider.deleted": [
    "event",
    "identity_provider"
  ],
  "tenancy.identity_provider.updated": [
    "event",
    "identity_provider"
  ],
  "tenancy.invitation.accepted": [
    "event",
    "invitation",
    "role_binding",
    "user"
  ],
  "tenancy.invitation.created": [
    "event",
    "invitation",
    "role_binding",
    "user"
  ],
  "tenancy.invitation.revoked": [
    "event",
    "invitation",
    "role_binding",
    "user"
  ],
  "tenancy.project.created": [
    "event",
    "permission",
    "project"
  ],
  "tenancy.role.created": [
    "event",
    "permission",
    "role"
  ],
  "tenancy.role.deleted": [
    "event",
    "permission",
    "role"
  ],
  "tenancy.service_account.created": [
    "event",
    "role_binding",
    "service_account",
    "service_account_key"
  ],
  "tenancy.service_account.deleted": [
    "event",
    "role_binding",
    "service_account",
    "service_account_key"
  ],
  "tenancy.service_account.disabled": [
    "event",
    "role_binding",
    "service_account",
    "service_account_key"
  ],
  "tenancy.service_account.enabled": [
    "event",
    "role_binding",
    "service_account",
    "service_account_key"
  ],
  "tenancy.service_account.key_added": [
    "event",
    "role_binding",
    "service_account",
    "service_account_key"
  ],
  "tenancy.service_account.key_retired": [
    "event",
    "role_binding",
    "service_account",
    "service_account_key"
  ],
  "tenancy.session.closed": [
    "event",
    "session"
  ],
  "tenancy.session.revoked": [
    "event",
    "session"
  ],
  "tenancy.tenant.created": [
    "event",
    "permission",
    "tenant"
  ],
  "tenancy.user.created": [
    "event",
    "role_binding",
    "user"
  ],
  "tenancy.user.disabled": [
    "event",
    "role_binding",
    "user"
  ],
  "tenancy.user.enabled": [
    "event",
    "role_binding",
    "user"
  ],
  "tenancy.user.password_changed": [
    "event",
    "role_binding",
    "user"
  ]
} as const;

export const READS = {
  "access_grant": [
    "/v1/projects/{project_id}/access-grants"
  ],
  "allocation": [
    "/v1/projects/{project_id}/allocations",
    "/v1/projects/{project_id}/allocations/{allocation_id}",
    "/v1/tenants/{tenant_id}/allocations"
  ],
  "app": [
    "/v1/apps",
    "/v1/apps/{app_slug}"
  ],
  "app_version": [
    "/v1/apps/{app_slug}/versions",
    "/v1/apps/{app_slug}/versions/{version}"
  ],
  "artifact": [
    "/v1/artifacts",
    "/v1/artifacts/{artifact_id}",
    "/v1/projects/{project_id}/artifacts",
    "/v1/projects/{project_id}/artifacts/{artifact_id}",
    "/v1/tenants/{tenant_id}/artifacts",
    "/v1/tenants/{tenant_id}/artifacts/{artifact_id}"
  ],
  "artifact_source": [
    "/v1/artifact-sources",
    "/v1/artifact-sources/{source_id}",
    "/v1/tenants/{tenant_id}/artifact-sources",
    "/v1/tenants/{tenant_id}/artifact-sources/{source_id}"
  ],
  "audit": [
    "/v1/tenants/{tenant_id}/audit"
  ],
  "break_glass": [
    "/v1/platform/break-glass",
    "/v1/tenants/{tenant_id}/break-glass"
  ],
  "catalog": [
    "/v1/projects/{project_id}/catalog"
  ],
  "credential": [
    "/v1/projects/{project_id}/credentials",
    "/v1/projects/{project_id}/credentials/{credential_id}"
  ],
  "delegation": [
    "/v1/projects/{project_id}/delegations"
  ],
  "deny_rule": [
    "/v1/deny-rules",
    "/v1/tenants/{tenant_id}/deny-rules"
  ],
  "departure_certificate": [
    "/v1/projects/{project_id}/departure-certificates"
  ],
  "entitlement": [
    "/v1/projects/{project_id}/entitlements"
  ],
  "event": [
    "/v1/projects/{project_id}/events",
    "/v1/tenants/{tenant_id}/events"
  ],
  "identity_provider": [
    "/v1/tenants/{tenant_id}/identity-providers",
    "/v1/tenants/{tenant_id}/identity-providers/{provider_id}"
  ],
  "instance": [
    "/v1/projects/{project_id}/instances",
    "/v1/projects/{project_id}/instances/{instance_id}"
  ],
  "invitation": [
    "/v1/tenants/{tenant_id}/invitations"
  ],
  "member": [
    "/v1/projects/{project_id}/instances/{instance_id}/members",
    "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}"
  ],
  "node": [
    "/v1/nodes/{node_id}",
    "/v1/tenants/{tenant_id}/nodes"
  ],
  "operation": [
    "/v1/projects/{project_id}/operations",
    "/v1/projects/{project_id}/operations/{operation_id}"
  ],
  "orphan": [
    "/v1/projects/{project_id}/orphans"
  ],
  "permission": [
    "/v1/projects/{project_id}/explain",
    "/v1/tenants/{tenant_id}/explain",
    "/v1/whoami",
    "/v1/whoami/explain",
    "/v1/whoami/permissions"
  ],
  "policy": [
    "/v1/policies",
    "/v1/policies/{policy_name}",
    "/v1/projects/{project_id}/policies",
    "/v1/projects/{project_id}/policies/{policy_name}",
    "/v1/projects/{project_id}/policy/effective",
    "/v1/projects/{project_id}/policy/explain",
    "/v1/tenants/{tenant_id}/policies",
    "/v1/tenants/{tenant_id}/policies/{policy_name}"
  ],
  "pool": [
    "/v1/tenants/{tenant_id}/pools"
  ],
  "project": [
    "/v1/projects",
    "/v1/projects/{project_id}"
  ],
  "quota": [
    "/v1/projects/{project_id}/quota"
  ],
  "region": [
    "/v1/regions"
  ],
  "role": [
    "/v1/tenants/{tenant_id}/roles"
  ],
  "role_binding": [
    "/v1/projects/{project_id}/members",
    "/v1/tenants/{tenant_id}/role-bindings"
  ],
  "secret": [
    "/v1/projects/{project_id}/instances/{instance_id}/secrets"
  ],
  "service_account": [
    "/v1/projects/{project_id}/service-accounts"
  ],
  "service_account_key": [
    "/v1/projects/{project_id}/service-accounts/{account_id}/keys"
  ],
  "session": [
    "/v1/auth/session",
    "/v1/whoami/sessions"
  ],
  "sku": [
    "/v1/skus"
  ],
  "ssh_authority": [
    "/v1/tenants/{tenant_id}/ssh-authorities"
  ],
  "task": [
    "/v1/nodes/{node_id}/tasks",
    "/v1/nodes/{node_id}/tasks/{task_id}",
    "/v1/projects/{project_id}/operations/{operation_id}/tasks/{task_id}"
  ],
  "tenant": [
    "/v1/tenants",
    "/v1/tenants/{tenant_id}"
  ],
  "triage": [
    "/v1/triage/{correlation_id}"
  ],
  "user": [
    "/v1/tenants/{tenant_id}/users"
  ]
} as const;

export const ROLES = {
  "platform_admin": [
    "artifacts.platform_artifact.create",
    "artifacts.platform_artifact.read",
    "artifacts.platform_artifact.withdraw",
    "artifacts.platform_source.create",
    "artifacts.platform_source.read",
    "artifacts.platform_source.update",
    "capacity.node.read",
    "capacity.region.create",
    "capacity.region.delete",
    "capacity.sku.create",
    "capacity.sku.delete",
    "catalog.app.create",
    "catalog.version.create",
    "catalog.version.deprecate",
    "catalog.version.publish",
    "catalog.version.withdraw",
    "iam.binding.create",
    "iam.binding.read",
    "iam.binding.remove",
    "iam.tenant_admin.appoint",
    "ledger.audit.read",
    "ledger.audit.verify",
    "platform.break_glass.approve",
    "platform.break_glass.close",
    "platform.break_glass.open",
    "platform.break_glass.read",
    "platform.deny.create",
    "platform.deny.read",
    "platform.deny.remove",
    "platform.tenant.create",
    "platform.tenant.read",
    "policy.platform.read",
    "policy.platform.remove",
    "policy.platform.set",
    "tenancy.tenant.read",
    "tenancy.user.create",
    "tenancy.user.disable",
    "tenancy.user.read"
  ],
  "platform_ops": [
    "artifacts.platform_artifact.read",
    "artifacts.platform_source.read",
    "capacity.node.read",
    "ledger.audit.read",
    "ledger.audit.verify",
    "platform.tenant.read",
    "policy.platform.read",
    "tenancy.tenant.read"
  ],
  "tenant_admin": [
    "apps.access.enter",
    "apps.access.grant",
    "apps.access.read",
    "apps.access.revoke",
    "apps.instance.create",
    "apps.instance.decommission",
    "apps.instance.operate",
    "apps.instance.read",
    "apps.instance.rotate",
    "apps.instance.update",
    "apps.instance.upgrade",
    "apps.member.add",
    "apps.member.operate",
    "apps.member.remove",
    "apps.operation.abandon",
    "apps.operation.cancel",
    "apps.operation.release",
    "apps.operation.retry",
    "apps.operation.work",
    "apps.orphan.read",
    "apps.orphan.resolve",
    "apps.secret.issue",
    "apps.secret.read",
    "apps.secret.use",
    "apps.task.ask",
    "artifacts.artifact.read",
    "artifacts.tenant_artifact.create",
    "artifacts.tenant_artifact.read",
    "artifacts.tenant_artifact.withdraw",
    "artifacts.tenant_source.create",
    "artifacts.tenant_source.read",
    "artifacts.tenant_source.update",
    "capacity.allocation.create",
    "capacity.allocation.extend",
    "capacity.allocation.read",
    "capacity.allocation.release",
    "capacity.enrolment.create",
    "capacity.node.cordon",
    "capacity.node.drain",
    "capacity.node.read",
    "capacity.node.readmit",
    "capacity.node.retire",
    "capacity.node.uncordon",
    "capacity.node.upgrade",
    "capacity.node.wipe",
    "capacity.pool.assign",
    "capacity.pool.create",
    "capacity.pool.delete",
    "capacity.pool.read",
    "capacity.quota.read",
    "capacity.quota.set",
    "capacity.task.read",
    "catalog.entitlement.create",
    "catalog.entitlement.disable",
    "catalog.entitlement.read",
    "custody.authority.read",
    "custody.authority.rotate",
    "custody.credential.bind",
    "custody.credential.create",
    "custody.credential.read",
    "custody.credential.revoke",
    "custody.credential.rotate",
    "custody.credential.use",
    "iam.binding.create",
    "iam.binding.read",
    "iam.binding.remove",
    "iam.decision.explain",
    "iam.delegation.create",
    "iam.delegation.read",
    "iam.delegation.revoke",
    "iam.deny.create",
    "iam.deny.read",
    "iam.deny.remove",
    "iam.member.read",
    "iam.operator.appoint",
    "iam.role.create",
    "iam.role.delete",
    "iam.role.read",
    "iam.service_account.create",
    "iam.service_account.delete",
    "iam.service_account.disable",
    "iam.service_account.read",
    "iam.service_account.rotate",
    "ledger.audit.read",
    "ledger.audit.verify",
    "ledger.event.read",
    "ledger.telemetry.write",
    "policy.project.read",
    "policy.project.remove",
    "policy.project.set",
    "policy.tenant.read",
    "policy.tenant.remove",
    "policy.tenant.set",
    "scheduler.catalog.read",
    "scheduler.instance.create",
    "scheduler.instance.delete",
    "scheduler.instance.read",
    "scheduler.instance.update",
    "scheduler.node.operate",
    "scheduler.node.read",
    "scheduler.queue.cancel",
    "scheduler.queue.read",
    "scheduler.queue.submit",
    "tenancy.break_glass.read",
    "tenancy.identity_provider.create",
    "tenancy.identity_provider.delete",
    "tenancy.identity_provider.read",
    "tenancy.identity_provider.update",
    "tenancy.project.create",
    "tenancy.project.read",
    "tenancy.tenant.read",
    "tenancy.user.create",
    "tenancy.user.disable",
    "tenancy.user.read"
  ],
  "project_admin": [
    "apps.access.enter",
    "apps.access.read",
    "apps.access.revoke",
    "apps.instance.create",
    "apps.instance.decommission",
    "apps.instance.operate",
    "apps.instance.read",
    "apps.instance.rotate",
    "apps.instance.update",
    "apps.instance.upgrade",
    "apps.member.add",
    "apps.member.operate",
    "apps.member.remove",
    "apps.operation.abandon",
    "apps.operation.cancel",
    "apps.operation.release",
    "apps.operation.retry",
    "apps.orphan.read",
    "apps.orphan.resolve",
    "apps.secret.issue",
    "apps.secret.read",
    "artifacts.artifact.read",
    "capacity.allocation.create",
    "capacity.allocation.extend",
    "capacity.allocation.read",
    "capacity.allocation.release",
    "capacity.quota.read",
    "catalog.entitlement.read",
    "custody.credential.bind",
    "custody.credential.create",
    "custody.credential.read",
    "custody.credential.revoke",
    "custody.credential.rotate",
    "iam.decision.explain",
    "iam.delegation.create",
    "iam.delegation.read",
    "iam.delegation.revoke",
    "iam.member.read",
    "iam.service_account.create",
    "iam.service_account.delete",
    "iam.service_account.disable",
    "iam.service_account.read",
    "iam.service_account.rotate",
    "ledger.event.read",
    "policy.project.read",
    "scheduler.catalog.read",
    "scheduler.instance.create",
    "scheduler.instance.delete",
    "scheduler.instance.read",
    "scheduler.instance.update",
    "scheduler.node.operate",
    "scheduler.node.read",
    "scheduler.queue.cancel",
    "scheduler.queue.read",
    "scheduler.queue.submit",
    "tenancy.project.read"
  ],
  "project_member": [
    "apps.instance.read",
    "apps.orphan.read",
    "artifacts.artifact.read",
    "capacity.allocation.read",
    "capacity.quota.read",
    "catalog.entitlement.read",
    "ledger.event.read",
    "policy.project.read",
    "scheduler.catalog.read",
    "scheduler.instance.read",
    "scheduler.node.read",
    "scheduler.queue.cancel",
    "scheduler.queue.read",
    "scheduler.queue.submit",
    "tenancy.project.read"
  ],
  "project_viewer": [
    "apps.instance.read",
    "apps.orphan.read",
    "artifacts.artifact.read",
    "capacity.allocation.read",
    "capacity.quota.read",
    "catalog.entitlement.read",
    "ledger.event.read",
    "policy.project.read",
    "scheduler.catalog.read",
    "scheduler.instance.read",
    "scheduler.node.read",
    "scheduler.queue.read",
    "tenancy.project.read"
  ],
  "app_operator": [
    "apps.access.grant",
    "apps.instance.read",
    "apps.operation.work",
    "apps.orphan.read",
    "apps.secret.use",
    "apps.task.ask",
    "artifacts.artifact.read",
    "capacity.allocation.read",
    "capacity.quota.read",
    "catalog.entitlement.read",
    "custody.credential.use",
    "ledger.event.read",
    "ledger.telemetry.write",
    "policy.project.read",
    "scheduler.catalog.read",
    "scheduler.instance.read",
    "scheduler.node.read",
    "scheduler.queue.read",
    "tenancy.project.read"
  ],
  "node_agent": [
    "artifacts.delivery.fetch",
    "capacity.node.report"
  ]
} as const;

export type ErrorCode =
  | "action_not_supported"
  | "agent_too_old"
  | "allocation_in_use"
  | "allocation_kept_for_other"
  | "allocation_not_active"
  | "allocation_not_of_operation"
  | "allocation_unknown"
  | "already_delivered"
  | "app_not_entitled"
  | "app_taken"
  | "artifact_address_refused"
  | "artifact_content_damaged"
  | "artifact_content_wrong"
  | "artifact_delivery_over"
  | "artifact_node_not_held"
  | "artifact_not_uploaded"
  | "artifact_on_its_way"
  | "artifact_quota_exceeded"
  | "artifact_source_away"
  | "artifact_source_disabled"
  | "artifact_source_in_use"
  | "artifact_source_name_taken"
  | "artifact_source_refused"
  | "artifact_upload_wrong"
  | "artifact_version_taken"
  | "artifact_withdrawn"
  | "assertion_refused"
  | "authority_in_use"
  | "authority_rotates"
  | "body_too_large"
  | "capacity_short"
  | "change_refused"
  | "condition_reserved"
  | "content_not_supported"
  | "credential_key_not_accepted"
  | "credential_key_not_new"
  | "credential_name_taken"
  | "credential_revoked"
  | "credential_version_retired"
  | "csrf_origin_refused"
  | "csrf_token_wrong"
  | "cursor_epoch_changed"
  | "cursor_expired"
  | "cursor_invalid"
  | "custody_failed"
  | "custody_unavailable"
  | "email_domains_needed"
  | "email_taken"
  | "enrolment_token_invalid"
  | "event_cursor_invalid"
  | "generation_outdated"
  | "grant_exceeds_own"
  | "grant_over"
  | "host_fenced"
  | "idempotency_in_flight"
  | "idempotency_key_missing"
  | "idempotency_key_reused"
  | "identity_cloned"
  | "identity_closed"
  | "identity_expired"
  | "identity_superseded"
  | "identity_unknown"
  | "inputs_invalid"
  | "internal_error"
  | "invalid_request"
  | "invitation_invalid"
  | "issuer_not_accepted"
  | "issuer_unreachable"
  | "machine_held"
  | "machine_not_clean"
  | "machine_reports"
  | "machine_shared"
  | "malformed_body"
  | "manifest_invalid"
  | "member_needed"
  | "member_not_enterable"
  | "member_unknown"
  | "members_not_ready"
  | "method_not_allowed"
  | "name_taken"
  | "no_key_to_seal_to"
  | "node_held"
  | "node_name_taken"
  | "node_not_ready"
  | "node_suspended"
  | "node_taken"
  | "not_cancelable"
  | "not_found"
  | "not_observable"
  | "not_retryable"
  | "not_yourself"
  | "nothing_to_roll_back"
  | "nothing_to_wipe"
  | "observation_outdated"
  | "observer_not_controller"
  | "oidc_refused"
  | "oidc_state_invalid"
  | "operating_mode_refused"
  | "operation_live"
  | "operator_appointment_needed"
  | "operator_unusable"
  | "password_wrong"
  | "permission_denied"
  | "permission_not_lendable"
  | "permission_undeniable"
  | "permission_unknown"
  | "placement_invalid"
  | "policy_denied"
  | "precondition_failed"
  | "precondition_required"
  | "public_key_not_accepted"
  | "public_key_taken"
  | "quota_exceeded"
  | "report_not_of_target"
  | "role_in_use"
  | "role_not_bindable"
  | "role_taken"
  | "scheduler_type_unknown"
  | "second_person_needed"
  | "sign_in_refused"
  | "slug_taken"
  | "ssh_key_not_accepted"
  | "stale_claim"
  | "stale_task"
  | "still_used"
  | "task_invalid"
  | "task_kind_unknown"
  | "teardown_evidence_missing"
  | "teardown_evidence_unverifiable"
  | "teardown_not_clean"
  | "tenant_needed"
  | "token_expired"
  | "too_many_guesses"
  | "too_many_keys"
  | "too_many_tasks"
  | "topology_unknown"
  | "unauthenticated"
  | "unavailable"
  | "version_not_published"
  | "version_taken"
  | "version_unchanged"
  | "version_withdrawn"
  | "wipe_under_way"
  | "wrong_state";
