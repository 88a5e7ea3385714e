"""Plans: the exact request of a change, stored for ten minutes in this process and applied at most once.

A plan is the request itself with its idempotency key: if it is sent again after a lost answer, the change still happens
once. Only a plan that was shown before can be applied. Used by tools.py.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpuaas_sdk.client.errors import ApiError
from gpuaas_sdk.client.request import Request

from .. import failures
from ..failures import CliError

LIFE_S = 600
AGAIN = "Create a new plan, review it, and apply it."


@dataclass
class Plan:
    id: str
    operation: str
    request: Request[Any]
    made: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    answer: Any = None
    applied: bool = False
    refused: str = ""


class Plans:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._known = clock, dict[str, Plan]()

    def make(self, operation: str, request: Request[Any]) -> Plan:
        now = self._clock()
        self._known = {key: one for key, one in self._known.items() if now - one.made < LIFE_S}
        plan = Plan(f"plan_{secrets.token_hex(8)}", operation, request, now)
        self._known[plan.id] = plan
        return plan

    def apply(self, plan_id: str, send: Callable[[Request[Any]], Any]) -> tuple[Plan, bool]:
        """Send the request of a plan, unless it was sent before. Returns the plan with its answer, and True if this
        call sent the request. Raises CliError if the plan is unknown, has expired or was refused by the platform."""
        plan = self._known.get(plan_id)
        if plan is None or self._clock() - plan.made >= LIFE_S:
            sentence = (
                f"Plan {plan_id} does not exist here. A plan is valid for ten minutes, in the server that created it."
            )
            raise CliError(sentence, AGAIN, failures.NOT_FOUND)
        with plan.lock:
            if plan.applied:
                return plan, False
            if plan.refused:
                raise CliError(f"The platform refused this plan: {plan.refused}", AGAIN, failures.CONFLICT)
            try:
                plan.answer = send(plan.request)
            except ApiError as error:
                if error.status < 500 and not error.retryable:
                    plan.refused = str(error)
                raise
            plan.applied = True
            return plan, True
