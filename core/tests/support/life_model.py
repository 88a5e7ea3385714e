"""The reference model: what the platform promises of one instance, in the plainest words."""

from typing import Any

from gpuaas_core.operations.states import LIVE

HOUR = 3_600_000
LIMIT_MS = {"deploy": 2 * HOUR, "upgrade": 2 * HOUR, "rollback": 2 * HOUR}
WAYS = {  # asked of a running instance: on the way, and where it leads
    "stop": ("running", "stopping", "stopped"),
    "start": ("stopped", "starting", "running"),
    "restart": ("running", "starting", "running"),
    "rotate_keys": ("running", "updating", "running"),
    "upgrade": ("running", "upgrading", "running"),
    "deploy": ("", "provisioning", "running"),
    "decommission": ("", "deleting", "deleted"),
}
MEMBER_WAYS = {  # of a worker: from, on the way, to
    "drain_member": ("ready", "draining", "drained"),
    "undrain_member": ("drained", "provisioning", "ready"),
    "restart_member": ("ready", "provisioning", "ready"),
    "remove_member": ("", "removing", "removed"),
    "add_member": ("", "provisioning", "ready"),
}


class Model:
    """What the platform promises of one instance, its workers and their operations, in the plainest words."""

    def __init__(self) -> None:
        self.instance = "none"
        self.ops: list[dict[str, Any]] = []
        self.workers: dict[str, str] = {}  # member id: state
        self.last: dict[str, int] = {}  # target ("" is the instance): number of its newest operation
        self.dirty: set[str] = set()  # allocations on which something was given up

    @property
    def live(self) -> list[dict[str, Any]]:
        return [op for op in self.ops if op["status"] in LIVE]

    def blocked(self, member: str = "") -> bool:
        return any(not op["member"] or not member or op["member"] == member for op in self.live)

    def queue(self, kind: str, now: int, member: str = "", **more: Any) -> None:
        fresh = {"status": "queued", "epoch": 0, "attempts": 0, "furthest": 0, "holder": None, "until": 0, "from": 0}
        state = self.workers.get(member, "") if member else self.instance
        fresh |= {"kind": kind, "cancel": False, "member": member, "came_from": state, "stuck": False}
        self.last[member] = len(self.ops)
        self.ops.append(fresh | {"deadline": now + LIMIT_MS.get(kind, HOUR), "progressed": now, "asked": now} | more)

    def waiting(self, holder: str, now: int) -> dict[str, Any] | None:
        for op in self.ops:
            free = op["status"] == "queued" and op["from"] <= now
            lost = op["status"] == "running" and (op["until"] <= now or op["holder"] == holder)
            if free or lost:
                return op
        return None

    def claim(self, holder: str, now: int) -> dict[str, Any] | None:
        while (op := self.waiting(holder, now)) and (op["attempts"] == 8 or op["deadline"] <= now):
            self.lose(op)
        if op is None:
            return None
        op |= {"status": "running", "epoch": op["epoch"] + 1, "attempts": op["attempts"] + 1, "stuck": False}
        op |= {"holder": holder, "until": now + 30_000, "progressed": now}
        if op["kind"] == "deploy":
            self.instance = "provisioning"
        if op["kind"] == "add_member":
            self.workers[op["member"]] = "provisioning"
        return op

    def lose(self, op: dict[str, Any]) -> None:
        op["status"], op["stuck"] = "needs_attention", False
        self.break_target(op)

    def break_target(self, op: dict[str, Any]) -> None:
        if op["member"]:
            self.workers[op["member"]] = "failed"
        elif op["kind"] != "decommission":
            self.instance = "failed"

    def end(self, op: dict[str, Any], how: str) -> None:
        op["status"], op["stuck"] = how, False
        if how == "failed":
            self.break_target(op)
        elif how == "canceled":
            self.undo(op)
        elif op["member"]:
            self.workers[op["member"]] = MEMBER_WAYS[op["kind"]][2]
        else:
            self.instance = WAYS[op["kind"]][2]
            if op["kind"] == "decommission":
                self.workers = dict.fromkeys(self.workers, "removed")

    def undo(self, op: dict[str, Any]) -> None:
        if op["kind"] == "add_member":
            self.workers[op["member"]] = "failed" if op["came_from"] == "failed" else "removed"
        elif op["member"]:
            self.workers[op["member"]] = op["came_from"]
        elif op["kind"] == "deploy":
            self.instance = "failed"
        elif op["kind"] != "decommission":
            self.instance = op["came_from"]

    def look(self, now: int) -> None:
        """Housekeeping: late work without a holder is lost, other late work is stuck."""
        for op in self.live:
            held = op["status"] == "running" and op["until"] > now
            if not held and op["deadline"] <= now:
                self.lose(op)
                continue
            late = op["deadline"] <= now or (op["status"] == "running" and not held)
            slow = op["status"] == "running" and op["progressed"] + 600_000 <= now
            unclaimed = op["status"] == "queued" and max(op["asked"], op["from"]) <= now - 120_000
            op["stuck"] = late or slow or unclaimed
