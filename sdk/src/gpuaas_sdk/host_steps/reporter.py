"""Reports the running step without delaying it: reports are sent in order, in the background.

If a report fails, for example because the claim was lost, the error is raised before the next step, so that no further
act starts.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from gpuaas_sdk import MemberReport

Report = tuple[str, int, int, str, Sequence[MemberReport] | None]
Send = Callable[[str, int, int, str, Sequence[MemberReport] | None], Awaitable[None]]


class Reporter:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._queue: asyncio.Queue[Report] = asyncio.Queue()
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._post())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def say(self, phase: str, step: int, of: int, message: str, members: Sequence[MemberReport] | None = None) -> None:
        self.check()
        self._queue.put_nowait((phase, step, of, message, members))

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    async def sent(self) -> None:
        """Wait until every report is sent. Raises the error of a failed report. Called before the outcome is sent."""
        await self._queue.join()
        self.check()

    async def _post(self) -> None:
        while True:
            report = await self._queue.get()
            try:
                if self._error is None:
                    await self._send(*report)
            except Exception as error:
                self._error = error
            finally:
                self._queue.task_done()
