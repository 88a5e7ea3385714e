"""A controller process of an app that does nothing but steps on a scripted host. For test_two_controllers.py.

Started with the identity file, the holder's name and the host's socket. Every command carries the claim's epoch, as on
real hosts; the host keeps the highest it has seen and refuses lower ones. Steps are probe and act, not idempotent.
"""

import asyncio
import json
import random
import sys
from typing import Any

from gpuaas_sdk import AsyncClient, Controller, Done, ServiceAccount, Work
from gpuaas_sdk.client.errors import stale_claim
from gpuaas_sdk.client.models import MemberReport

STEPS = 3


async def _host(where: str, work: Work, act: int | None = None) -> list[int]:
    """The steps done so far; with `act` one more is done first, unless a newer epoch was there."""
    said = {"operation": work.operation.id, "epoch": work.claim_epoch, "act": act}
    reader, writer = await asyncio.open_unix_connection(where)
    try:
        writer.write(json.dumps(said).encode() + b"\n")
        answer: dict[str, Any] = json.loads(await reader.readline())
    finally:
        writer.close()
    if answer.get("refused"):
        raise stale_claim(work.operation.id, "the host has seen a newer epoch", work.operation.correlation_id)
    return answer["done"]


def deploying(where: str) -> Any:
    async def deploy(work: Work) -> Done:
        for step in range(1, STEPS + 1):
            work.check()
            if step not in await _host(where, work):
                await asyncio.sleep(random.uniform(0.2, 1.0))
                await _host(where, work, act=step)
            await work.progress("work", step, STEPS, f"Step {step}")
        return Done("Done.", members=[MemberReport(member_id=one.id, state="ready") for one in work.members()])

    return deploy


async def main(identity: str, holder: str, where: str) -> None:
    async with AsyncClient.for_service_account(ServiceAccount.load(identity)) as client:
        reconcilers = {"deploy": deploying(where)}
        await Controller(client, "echo", holder, reconcilers, wait_s=2, concurrency=6).run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
