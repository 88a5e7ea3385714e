"""Errors of policy."""

from ..authz.context import Denied


class PolicyDenied(Denied):
    """Recorded like every refusal: the caller has the permission, but a policy refuses these values."""

    status, code, title = 403, "policy_denied", "Denied by policy"
    way_out = (
        "Choose another value (`gpuaas policy show` lists what is allowed), or ask the author of the policy named in "
        "`detail`."
    )
