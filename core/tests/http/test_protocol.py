"""What the server writes in one turn of the event loop leaves in one piece, and nothing is lost when it closes."""

import asyncio

from gpuaas_core.http.protocol import JoinedWrites


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...


async def test_head_and_body_leave_together_and_the_next_response_after_them() -> None:
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    joined.write(b"head ")
    joined.write(memoryview(b"body"))
    assert wire.sent == []
    await asyncio.sleep(0)
    joined.write(b"next")
    await asyncio.sleep(0)
    assert wire.sent == [b"head body", b"next"]


async def test_the_head_of_a_stream_does_not_wait_for_its_first_event() -> None:
    wire = Wire()
    JoinedWrites(wire, asyncio.get_running_loop()).write(b"head")
    await asyncio.sleep(0)
    assert wire.sent == [b"head"]


async def test_closing_sends_what_was_written_and_aborting_does_not() -> None:
    for end, sent in (("close", [b"last"]), ("abort", [])):
        wire = Wire()
        joined = JoinedWrites(wire, asyncio.get_running_loop())
        joined.write(b"last")
        getattr(joined, end)()
        await asyncio.sleep(0)
        assert (wire.sent, wire.closed) == (sent, True)
