"""SSH sessions of people: a certificate for a key that was generated for one connection.

The certificate can open sessions for five minutes. A session may last longer: it ends when its reason ends, which the
grant's purpose checks every second, and after a working day at the latest, which the machine itself enforces. Its
principal differs from the controllers' and logs in as an unprivileged user.
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
    """Issue the certificate; return the grant, and when the last session opened with it must end."""
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
