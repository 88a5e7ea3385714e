"""Routes with information about the platform itself: version, issuer, retention and health."""

from typing import Any

from fastapi import APIRouter
from sqlalchemy import text

from .. import __version__
from ..credentials.sealing import signing_jwk
from ..http.call import Caller, public
from ..identity.assertions import ISSUER
from ..kit.wire import View
from ..operations import watchdog

router = APIRouter(tags=["about"])


class AboutView(View):
    name: str
    version: str
    issuer: str
    retention: dict[str, int]
    features: dict[str, Any]
    keys: dict[str, dict[str, str]]


class StatusView(View):
    status: str


@router.get("/v1", **public())
async def about(call: Caller) -> AboutView:
    return AboutView(
        name="GPUaaS",
        version=__version__,
        issuer=ISSUER,
        retention={"events_days": 7, "idempotency_days": 7, "operations_days": watchdog.KEPT_DAYS, "telemetry_days": 7},
        keys={"secrets": signing_jwk(call.vault)},
        features={"machine_access": "ssh_certificate", "events": ["list", "long_poll", "sse"]},
    )


@router.get("/healthz", **public())
async def healthz(call: Caller) -> StatusView:
    return StatusView(status="ok")


@router.get("/readyz", **public())
async def readyz(call: Caller) -> StatusView:
    """Report that the core is ready. The request fails if the database does not respond."""
    await call.read(lambda ctx: ctx.tx.execute(text("select 1")).scalar())
    return StatusView(status="ready")
