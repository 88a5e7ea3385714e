"""The command `gpuaas-core`: serves the API, migrates the database,
creates the first administrator, writes the contracts."""

import asyncio
import contextlib
import gc
import logging
import os
import socket
import sys
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import cyclopts
import msgspec
import structlog
import uvicorn
from cyclopts import Parameter
from starlette.types import ASGIApp

from . import __version__
from .api.app import build_asgi, build_platform
from .artifacts.store import Bounds, Store
from .backup.commands import backup, restore, restored
from .contract_docs.breaking import DOCUMENTS, breaks, write_release
from .contract_docs.contracts import write_contracts
from .custody.commands import custody
from .custody.key_providers import open_holder
from .custody.vault import DataKeyVault, open_vault
from .doctor import commands
from .events.nats_publisher import Fanout
from .http.console_files import Console
from .http.protocol import Protocol
from .identity.passwords import hash_password
from .identity.users import bootstrap_admin
from .kit.clock import system_clock
from .kit.correlation import correlated
from .kit.db import Database
from .kit.problems import Problem
from .metrics.serve import Metrics
from .migrations.migrate import downgrade, migrate
from .settings import Settings
from .triage.otlp_export import OtlpExport

app = cyclopts.App(name="gpuaas-core", version=__version__, help="The GPUaaS platform core.")
app.command(commands.audit)
app.command(commands.doctor)
app.command(custody)
for command in (backup, restore, restored):
    app.command(command)


@app.command
def serve() -> None:
    """Migrate the database if needed and serve the API on GPUAAS_CORE_LISTEN:GPUAAS_CORE_PORT."""
    settings = Settings.read()
    export = OtlpExport(settings.otlp_endpoint, settings.otlp_headers) if settings.otlp_endpoint else None
    _configure_logs(export)
    db = _open(settings)
    vault = _open_vault(settings, db)
    bounds = Bounds(settings.artifacts_largest, settings.artifacts_quota, settings.artifacts_cache)
    platform = build_platform(
        db,
        vault,
        checkpoints=settings.checkpoints,
        public_url=settings.public_url,
        artifacts=Store(settings.artifacts, bounds),
        durations=settings.durations,
    )
    metrics = Metrics(platform) if settings.metrics else None
    if metrics and export:
        metrics.registry.register(export)
    beside_api = [Fanout(db, platform.clock, settings.nats).running] if settings.nats else []
    beside_api += [export.running] if export else []
    api = build_asgi(platform, [watcher for watcher in (metrics and metrics.requests, export) if watcher], beside_api)
    served = Console(api, settings.console)
    sockets = [_bind(host, settings.port) for host in settings.listen]
    beside = [(metrics, _bind(*settings.metrics_address))] if metrics else []
    structlog.get_logger("gpuaas.core").info(
        "serving", listen=settings.listen, port=settings.port, metrics=settings.metrics
    )
    gc.set_threshold(50_000, 20, 20)  # collect rarely: few objects form cycles, and collections cost time
    gc.freeze()  # objects that exist now live until the end: no collection has to visit them
    with asyncio.Runner(loop_factory=_config(served).get_loop_factory()) as runner:
        runner.run(_serve(served, sockets, beside))
    db.close()


async def _serve(api: ASGIApp, sockets: list[socket.socket], beside: Sequence[tuple[ASGIApp, socket.socket]]) -> None:
    """Run the API server and the servers in `beside` until the API server stops."""
    others = [(_Beside(_config(app)), bound) for app, bound in beside]
    tasks = [asyncio.create_task(other.serve(sockets=[bound])) for other, bound in others]
    await uvicorn.Server(_config(api)).serve(sockets=sockets)
    for other, _ in others:
        other.should_exit = True
    await asyncio.gather(*tasks)


class _Beside(uvicorn.Server):
    """A server without signal handlers, because the API's server handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app, http=Protocol, log_level="warning", access_log=False, timeout_graceful_shutdown=3, server_header=False
    )


@app.command
def admin(email: str, *, password_stdin: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Create a platform administrator or set a new password. The password is read from standard input.

    Example: `printf %s "$PASSWORD" | gpuaas-core admin admin@example.com --password-stdin`
    """
    if not password_stdin:
        print("Send the password on standard input and add --password-stdin.", file=sys.stderr)
        raise SystemExit(2)
    password = sys.stdin.read().rstrip("\n")
    if len(password) < 12:
        print("The password needs at least 12 characters.", file=sys.stderr)
        raise SystemExit(2)
    db = _open(Settings.read())
    user = db.write_now(lambda tx: bootstrap_admin(tx, email.lower(), hash_password(password), system_clock()))
    print(user)


@app.command(name="migrate")
def migrate_store(*, down_to: str | None = None) -> None:
    """Migrate the database to the newest schema, or down to an older one (data of newer schemas is lost).

    Parameters
    ----------
    down_to
        a revision, or `base` for an empty database
    """
    settings = Settings.read()
    if down_to is None:
        _open(settings).close()
    else:
        downgrade(settings.database_url, down_to)


@app.command
def contracts(
    folder: Path = Path("contracts"),
    *,
    docs: Path = Path("docs/reference"),
    check: Annotated[bool, Parameter(negative=())] = False,
    release: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Write the contracts (OpenAPI, AsyncAPI, permissions, access matrix, errors, …); with --check only compare them.

    Either way, a change that breaks callers of the last release fails unless released/breaks.json announces it.

    Parameters
    ----------
    docs
        Folder of the reference pages.
    release
        Make the current contract the baseline for later comparisons.
    """
    os.umask(0o022)  # readable by every user
    stale = write_contracts(folder, docs, check=check)
    if release:
        write_release(folder)
    if stale:
        print("Contracts are out of date: " + ", ".join(stale) + ". Run `make contracts`.", file=sys.stderr)
    broken = breaks(folder, {name: (folder / name).read_text() for name in DOCUMENTS}) if not stale else []
    for change in broken:
        print(f"This breaks callers of the last release: {change}", file=sys.stderr)
    if broken:
        print("Undo the change, or announce it with a reason in contracts/released/breaks.json.", file=sys.stderr)
    if stale or broken:
        raise SystemExit(1)


def _open(settings: Settings) -> Database:
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    migrate(settings.database_url)
    return Database(settings.database_url)


def _open_vault(settings: Settings, db: Database) -> DataKeyVault:
    holder = open_holder(settings.custody, os.environ, settings.data_dir)
    return open_vault(db.write_now, holder, cache_s=settings.custody_cache_s)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # TCP_NODELAY, inherited by every connection: without it an answer in two writes waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(
        socket.SOL_IP, 15, 1
    ) if family == socket.AF_INET else None  # IP_FREEBIND: address may come later
    listener.bind((host, port))
    listener.set_inheritable(True)
    return listener


_LINES = msgspec.json.Encoder(enc_hook=repr)


def _completed(logger: object, level: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Add the ids of the request, the level, the time and the traceback to a log line. Used as a structlog processor.
    One function for all, because every request writes a line."""
    correlated(logger, level, line)
    line["level"], line["timestamp"] = level, f"{datetime.now(UTC).isoformat()[:-6]}Z"  # without +00:00
    return structlog.processors.format_exc_info(logger, level, line) if "exc_info" in line else line


def _encoded(_logger: object, _level: str, line: structlog.typing.EventDict) -> bytes:
    return _LINES.encode(line)


def _configure_logs(export: OtlpExport | None) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    structlog.configure(
        processors=[_completed, *([export.line] if export else []), _encoded],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.BytesLoggerFactory(sys.stdout.buffer),
        cache_logger_on_first_use=True,
    )


def main() -> None:
    os.umask(0o077)  # database, backups, checkpoints and artifacts are readable by this user only
    try:
        app()
    except Problem as problem:  # printed for a person
        raise SystemExit(f"{problem.detail} {problem.exit}") from problem
