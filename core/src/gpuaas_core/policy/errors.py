"""Errors of policy."""

from ..authz.context import Denied


class PolicyDenied(Denied):
    """A policy refuses the requested values although the caller has the permission. The refusal is audited like a
    missing permission."""

    status, code, title = 403, "policy_denied", "Denied by policy"
    way_out = (
        "Choose another value (`gpuaas policy show` lists the allowed values), or ask the author of the policy named "
        "in `detail`."
    )
