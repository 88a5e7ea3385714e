"""A second app, small and without any machine: what the console shows of it comes from its manifest and its controller.

Started with an identity file. `speed` 0 is for tests; screenshots want to see it at work.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from gpuaas_sdk import AsyncClient, Controller, Done, Failed, ServiceAccount, Work
from gpuaas_sdk.client.models import Condition, MemberReport

SLUG, VERSION = "notebooks", "1.4.0"
BOTH = ["together", "apart"]
ALONE = "Everything is on one machine here; deploy it apart to add machines."
MANIFEST: dict[str, Any] = {
    "manifest_version": 1,
    "app_slug": SLUG,
    "version": VERSION,
    "runtime_backend": "bare_metal",
    "title": "Notebooks",
    "summary": "Interactive notebooks for a whole team, each with its own GPU.",
    "components": [{"key": "hub", "title": "Hub"}, {"key": "runner", "title": "Runner"}],
    "topologies": [
        {
            "key": "together",
            "title": "Hub and runner on one machine",
            "components": {"hub": {"min": 1, "max": 1}, "runner": {"min": 1, "max": 1, "shares_with": "hub"}},
        },
        {
            "key": "apart",
            "title": "A hub, and runners on machines of their own",
            "components": {"hub": {"min": 1, "max": 1}, "runner": {"min": 1, "max": 8}},
        },
    ],
    "inputs_schema": {
        "type": "object",
        "additionalProperties": False,
        "required": ["greeting"],
        "properties": {
            "greeting": {"type": "string", "title": "Greeting", "description": "Shown to everybody who opens the hub.", "minLength": 3, "maxLength": 40},
            "image": {"type": "string", "title": "Image", "enum": ["pytorch", "jax", "plain"], "default": "pytorch"},
            "idle_minutes": {"type": "integer", "title": "Idle minutes", "description": "After so long an unused notebook is put to sleep.", "minimum": 5, "maximum": 600, "default": 60},
            "share_gpus": {"type": "boolean", "title": "Share GPUs", "description": "Several notebooks may use one GPU.", "default": False},
            "trouble": {"type": "string", "title": "Trouble", "description": "For trying out what a failure looks like.", "enum": ["none", "once", "stubborn"], "default": "none"},
        },
    },
    "actions": [
        *({"key": key, "title": title, "target": "instance", "valid_in": BOTH} for key, title in [("stop", "Put to sleep"), ("start", "Wake up"), ("restart", "Restart"), ("update", "Change settings"), ("upgrade", "Change the version"), ("rollback", "Back to the last version")]),
        {"key": "add_runner", "title": "Add runners", "target": "instance", "valid_in": ["apart"], "reason_when_not": ALONE},
        *({"key": key, "title": title, "target": "member", "valid_in": ["apart"], "reason_when_not": ALONE} for key, title in [("drain", "Drain"), ("undrain", "Take work again"), ("restart", "Restart"), ("remove", "Remove"), ("replace", "Replace")]),
    ],
    "health": [{"key": "hub", "title": "The hub answers"}, {"key": "runners", "title": "Every runner has a free GPU"}],
    "docs": {"runbook": "runbook.md"},
}  # fmt: skip
STEPS = {
    "deploy": ["Checking the machines", "Installing the hub", "Installing the runners", "Opening the first notebook"],
    "add_member": ["Checking the machine", "Installing the runner", "Opening a notebook on it"],
    "drain_member": ["Letting notebooks end"],
    "remove_member": ["Closing notebooks", "Removing the runner"],
    "decommission": ["Closing every notebook", "Removing runners and hub", "Looking for anything left"],
}
CLEAN = {"checks": [{"check": "runner", "ok": True, "detail": "no runner and no notebook left"}]}
AFTERWARDS = {"drain_member": "drained", "remove_member": "removed"}
TROUBLE = (
    "image_not_there",
    "The image could not be fetched: the mirror answered with an error.",
    "Look whether the mirror is up, then retry.",
)
STICKS = ("runner_sticks", "The runner does not let go of its notebooks.", "Look at its machine, then retry.")
CALLED_OFF = ("canceled", "It was called off before anything was done.", "Ask again when it suits.")


class App:
    def __init__(self, speed: float) -> None:
        self.speed, self.failed = speed, set[str]()

    async def reconcile(self, work: Work) -> Done | Failed:
        kind, steps = work.operation.kind, STEPS.get(work.operation.kind, ["Doing what was asked"])
        if work.instance.inputs.get("trouble") == "stubborn" and kind in STUBBORN:
            return await STUBBORN[kind](work)
        for number, step in enumerate(steps, 1):
            work.check()
            await work.progress("work", number, len(steps), step)
            await asyncio.sleep(self.speed)
            if number == 2 and self._troubled(work):
                return Failed(*TROUBLE, retryable=True)
        if kind in ("decommission", "remove_member"):
            return Done("Gone.", evidence={one.allocation_id: CLEAN for one in work.instance.members})
        return self._done(work)

    def _troubled(self, work: Work) -> bool:
        new = work.instance.id not in self.failed
        self.failed.add(work.instance.id)
        return new and work.operation.kind == "deploy" and work.instance.inputs.get("trouble") == "once"

    def _done(self, work: Work) -> Done:
        mine = [one for one in work.instance.members if work.operation.member_id in (None, one.id)]
        replaced = work.operation.old_member_id
        state = AFTERWARDS.get(work.operation.kind, "ready")
        reports = [
            MemberReport(member_id=one.id, state=state, runtime_state="idle", runtime_version="4.1") for one in mine
        ]
        runners = len({one.id for one in work.instance.members if one.component_key == "runner"})
        names = [f"{runners} runner{'' if runners == 1 else 's'} ready", "a notebook was opened and closed"]
        address = f"https://{work.instance.name}.notebooks.example"
        return Done(
            f"The hub answers, {' and '.join(names)}.",
            access={
                "address": address,
                "greeting": work.instance.inputs.get("greeting"),
                "commands": [{"command": f"notebooks open {address}", "tried": "exit 0"}],
                "versions": {"hub": "4.1", "runner": "4.1"},
            },
            runtime_version="4.1",
            conditions=[
                Condition(type="hub", status="True", reason="proven", message="It answered in 12 ms."),
                Condition(type="runners", status="True", reason="proven", message=f"{runners} of {runners} have one."),
            ],
            evidence={one.allocation_id: CLEAN for one in work.instance.members if one.id == replaced} or None,
            members=reports if work.operation.kind != "stop" else [],
        )


async def _holds(work: Work) -> Failed:
    """Works until it is canceled or its claim is released."""
    while not work.cancel_requested:
        await work.progress("work", 1, 1, "Waiting for every notebook to end")
        await asyncio.sleep(0.5)
    return Failed(*CALLED_OFF)


async def _sticks(_: Work) -> Failed:
    return Failed(*STICKS, retryable=True)


STUBBORN = {"restart": _holds, "remove_member": _sticks}


async def main(identity: str, speed: str) -> None:
    app = App(float(speed))
    kinds = ["deploy", "decommission", "stop", "start", "restart", "reconfigure", "add_member", "drain_member"]
    kinds += ["undrain_member", "restart_member", "remove_member", "replace_member", "upgrade", "rollback"]
    async with AsyncClient.for_service_account(ServiceAccount.load(Path(identity))) as client:
        await Controller(client, SLUG, "notebooks-1", dict.fromkeys(kinds, app.reconcile), wait_s=5).run(
            asyncio.Event()
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
