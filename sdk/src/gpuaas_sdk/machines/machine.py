"""Commands and files on the hosts of a claimed operation, over SSH with short-lived certificates.

Called by app controllers inside a reconcile function. No key is stored: each connection generates an Ed25519 key in
memory and requests a certificate under the current claim, so a controller that lost its claim cannot reconnect. The
host is verified too: only a host certificate signed by the platform's host CA for exactly this node is accepted, never
a bare key or a certificate without principals. asyncssh is imported with the first connection.

    async with Machine.connect(work, allocation_id) as machine:
        result = await machine.run(["sinfo", "--noheader"], timeout=20)
"""

from __future__ import annotations

import asyncio
import math
import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..client.backoff import now
from ..client.errors import AccessRefused, CommandTimedOut, HostIdentityWrong, MachineError, MachineUnreachable
from ..client.models import GrantView
from .grants import Grants

if TYPE_CHECKING:
    import asyncssh

CONNECT_S = 15.0
KILL_AFTER_S = 5
GRANT_MARGIN_S = 30.0
OUTPUT_LIMIT = 4 * 1024 * 1024

PUT_SCRIPT = """set -eu
path=$1 mode=$2 owner=$3
new=$(mktemp "$path.XXXXXXXX")
trap 'rm -f "$new"' EXIT
cat >"$new"
chown "$owner" "$new"
chmod "$mode" "$new"
sync "$new"
mv -fT "$new" "$path"
"""
READ_SCRIPT = 'if [ -e "$1" ]; then cat "$1"; else exit 44; fi'


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command. `exit` is the exit code, or the negative signal number if a signal killed the command. A
    non-zero exit code raises no exception."""

    exit: int
    stdout: str
    stderr: str
    truncated: bool = False  # more than 4 MiB of output; the rest was thrown away

    @property
    def ok(self) -> bool:
        return self.exit == 0


class Machine:
    """A connection to one host. It reconnects if the connection broke between two commands, with a new grant if
    needed."""

    def __init__(self, grants: Grants, allocation_id: str) -> None:
        self._grants, self._allocation_id = grants, allocation_id
        self._connection: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()
        self._key: asyncssh.SSHKey | None = None
        self._grant: GrantView | None = None
        self._grant_ends_at = 0.0

    @classmethod
    @asynccontextmanager
    async def connect(cls, work: Grants, allocation_id: str) -> AsyncGenerator[Machine]:
        machine = cls(work, allocation_id)
        await machine._connected()
        try:
            yield machine
        finally:
            await machine.close()

    @property
    def address(self) -> str:
        return self._grant.address if self._grant else self._allocation_id

    async def run(self, argv: list[str], *, input: bytes | str | None = None, timeout: float = 60.0) -> Result:  # noqa: ASYNC109
        """Run a program on the host. Arguments are quoted; pass secrets in `input`, since arguments are visible on the
        host.

        The program runs under `timeout` on the host, so it ends there even if this controller dies.
        """
        data = await self._run(argv, input.encode() if isinstance(input, str) else input, timeout)
        return Result(data.exit, data.out.decode(errors="replace"), data.err.decode(errors="replace"), data.truncated)

    async def put(self, path: str, data: bytes, *, mode: int = 0o644, owner: str = "root:root") -> None:
        """Write a whole file atomically, with mode and owner."""
        result = await self.run(["sh", "-c", PUT_SCRIPT, "put", path, f"{mode:04o}", owner], input=data)
        if not result.ok:
            raise MachineError(f"{path} could not be written on {self.address}: {result.stderr.strip()}.")

    async def read(self, path: str) -> bytes | None:
        """Return a file's content, or None if the file does not exist."""
        data = await self._run(["sh", "-c", READ_SCRIPT, "read", path], None, 60.0)
        if data.exit == 44:
            return None
        if data.exit != 0 or data.truncated:
            why = data.err.decode(errors="replace").strip() or "it is too large"
            raise MachineError(f"{path} could not be read on {self.address}: {why}.")
        return data.out

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            try:
                async with asyncio.timeout(5.0):
                    await self._connection.wait_closed()
            except TimeoutError:
                self._connection.abort()
            self._connection = None

    # --- commands

    async def _run(self, argv: list[str], data: bytes | None, seconds: float) -> _Raw:
        import asyncssh

        self._grants.check()
        limited = ["timeout", f"--kill-after={KILL_AFTER_S}", f"{max(1, math.ceil(seconds))}", *argv]
        with self._grants.expecting(seconds + CONNECT_S + KILL_AFTER_S):
            connection = await self._connected()
            started = now()
            command, patience = shlex.join(limited), seconds + KILL_AFTER_S + 5
            try:
                async with asyncio.timeout(patience):
                    raw = await _exchange(connection, command, data)
            except TimeoutError:
                connection.abort()
                raise self._timed_out(argv, seconds) from None
            except (asyncssh.Error, OSError) as error:
                raise MachineUnreachable(f"The connection to {self.address} broke: {error}.") from error
        if raw.exit in (124, 137, -9) and now() - started >= seconds:
            raise self._timed_out(argv, seconds)
        return raw

    def _timed_out(self, argv: list[str], seconds: float) -> CommandTimedOut:
        return CommandTimedOut(f"{argv[0]} on {self.address} did not end within {seconds:g} s.")

    # --- connections

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._open_again()
            return self._connection

    async def _open_again(self) -> asyncssh.SSHClientConnection:
        """Reconnect with the existing certificate, or with a new one if there is none. If the host rejects the existing
        certificate, try once more with a new one."""
        kept = self._grant
        try:
            return await self._open(await self._current_grant())
        except MachineError:
            if kept is None or self._grant is not None:
                raise
        return await self._open(await self._current_grant())

    async def _current_grant(self) -> GrantView:
        import asyncssh

        if self._grant is None or now() > self._grant_ends_at - GRANT_MARGIN_S:
            self._key = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType] - untyped in asyncssh
            asked_at = now()
            public = self._key.export_public_key("openssh").decode().strip()
            self._grant = await self._grants.grant(self._allocation_id, public)
            self._grant_ends_at = asked_at + self._grant.expires_in_s
        return self._grant

    async def _open(self, grant: GrantView) -> asyncssh.SSHClientConnection:
        import asyncssh

        from .host_identity import HostCheck

        self._grants.check()
        host = HostCheck(grant.host_principal)
        try:
            connection = await asyncssh.connect(
                grant.address,
                grant.port,
                client_factory=lambda: host.client(),
                username=grant.login_user,
                client_keys=[(self._key, asyncssh.import_certificate(grant.certificate))],
                known_hosts=([], [asyncssh.import_public_key(line) for line in grant.host_ca_public_keys], []),
                host_key_alias=grant.host_principal,
                server_host_key_algs="default",  # bare keys may be offered, so that HostCheck can say what is wrong
                preferred_auth="publickey",
                agent_path=None,
                config=None,
                request_pty=False,
                keepalive_interval=15,
                connect_timeout=CONNECT_S,
                login_timeout=CONNECT_S,
            )
        except (asyncssh.Error, OSError, TimeoutError) as error:
            if isinstance(error, (asyncssh.PermissionDenied, asyncssh.HostKeyNotVerifiable)):
                self._grant = None  # it was revoked, or the host has a certificate of a new authority
            raise _meaning(error, grant) from error
        if not host.proven:  # fail closed, should asyncssh ever stop asking us
            connection.abort()
            raise _identity_wrong(grant, "its certificate was not checked")
        return connection


@dataclass(frozen=True, slots=True)
class _Raw:
    exit: int
    out: bytes
    err: bytes
    truncated: bool


async def _exchange(connection: asyncssh.SSHClientConnection, command: str, data: bytes | None) -> _Raw:
    process = await connection.create_process(command, encoding=None)
    try:
        out, err, _ = await asyncio.gather(_drain(process.stdout), _drain(process.stderr), _feed(process, data))
        await process.wait_closed()
    finally:
        process.close()
    status = process.exit_status
    if process.exit_signal:
        import signal

        status = -getattr(signal, f"SIG{process.exit_signal[0]}", 1)
    if status is None:
        raise ConnectionResetError("the connection ended before the command did")
    return _Raw(status, out[0], err[0], out[1] or err[1])


async def _feed(process: asyncssh.SSHClientProcess[bytes], data: bytes | None) -> None:
    try:
        if data:
            process.stdin.write(data)
            await process.stdin.drain()
        process.stdin.write_eof()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the command did not want its input; its exit says how it went


async def _drain(stream: asyncssh.SSHReader[bytes]) -> tuple[bytes, bool]:
    """Read the stream to its end but keep at most OUTPUT_LIMIT bytes, to bound the memory used."""
    kept, size = bytearray(), 0
    while chunk := await stream.read(65536):
        size += len(chunk)
        kept += chunk[: max(0, OUTPUT_LIMIT - len(kept))]
    return bytes(kept), size > OUTPUT_LIMIT


def _identity_wrong(grant: GrantView, why: str) -> HostIdentityWrong:
    return HostIdentityWrong(f"What answers at {grant.address} is not {grant.host_principal}: {why}.")


def _meaning(error: Exception, grant: GrantView) -> MachineError:
    import asyncssh

    where = f"{grant.address} port {grant.port}"
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _identity_wrong(grant, str(error))
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return _identity_wrong(grant, f"it offers no host certificate ({error})")
    if isinstance(error, asyncssh.PermissionDenied):
        sentence = f"{where} does not accept the certificate for {grant.principal} as {grant.login_user}."
        return AccessRefused(sentence)
    why = str(error) or "no answer in time"
    return MachineUnreachable(f"{where} cannot be reached: {why}.")
