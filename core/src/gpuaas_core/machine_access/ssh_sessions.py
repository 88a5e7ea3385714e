"""SSH sessions of people: each connection has its own key, and a certificate for this key.

The certificate can open sessions for five minutes. A session may last longer. It ends when the reason for the access
ends, which the grant's purpose checks every second, and after eight hours at the latest, which the machine itself
enforces. The SSH principal of people differs from that of controllers and logs in as an unprivileged user.
"""

from ..authz.context import Context
from ..capacity.rows import PlacedAllocationRow
from ..custody.vault import Vault
from . import authorities, certificates
from .host_trust import people_of
from .rows import Reason
from .schemas import AskCertificate, GrantView

LASTS_S = 8 * 3600  # machines end a session after this long, from when it began (the agent's people.py)


def open_session(
    ctx: Context, vault: Vault, allocation: PlacedAllocationRow, body: AskCertificate, reason: Reason
) -> tuple[GrantView, int]:
    """Issue a certificate for a person; return the grant, and the time when the last session opened with it must
    end."""
    ends_at = ctx.now + (authorities.USER_CERTIFICATE_S + LASTS_S) * 1000
    given = certificates.give(
        ctx,
        vault,
        allocation,
        body,
        reason,
        principal=people_of(allocation.id),
        key_id=f"{ctx.principal.id}/1",
        ends_at=ends_at,
    )
    return given, ends_at
