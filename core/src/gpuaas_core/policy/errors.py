"""Errors of policy."""

from ..access.context import Denied


class PolicyDenied(Denied):
    """Recorded like every refusal: the caller may do this, but not with these values."""

    status, code, title = 403, "policy_denied", "A policy does not allow this"
    way_out = (
        "Choose another value (`gpuaas policy show` lists what is allowed), or ask whoever set the policy named in "
        "`detail`."
    )
