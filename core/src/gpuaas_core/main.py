"""`gpuaas-core`: serve the API, migrate the store, make the first administrator, write the contracts."""

import asyncio
import logging
import socket
import sys
from pathlib import Path
from typing import Annotated

import cyclopts
import structlog
import uvicorn
from cyclopts import Parameter

from . import __version__
from .api.app import build_asgi, build_platform
from .api.contracts import write_contracts
from .custody.vault import Vault, check_belongs
from .doctor import commands
from .kit.clock import system_clock
from .kit.db import Database
from .migrations.migrate import downgrade, migrate
from .settings import Settings
from .tenancy.identity import hash_password
from .tenancy.service import bootstrap_admin

app = cyclopts.App(name="gpuaas-core", version=__version__, help="The GPUaaS platform core.")
app.command(commands.audit)
app.command(commands.doctor)


@app.command
def serve() -> None:
    """Migrate the store if needed and serve the API on GPUAAS_CORE_LISTEN:GPUAAS_CORE_PORT."""
    _configure_logs()
    settings = Settings.read()
    db = _open(settings)
    vault = Vault.in_file(settings.data_dir / "master.key")
    db.write_now(lambda tx: check_belongs(tx, vault))
    platform = build_platform(db, vault, checkpoints=settings.checkpoints)
    config = uvicorn.Config(
        build_asgi(platform), log_level="warning", access_log=False, timeout_graceful_shutdown=3, server_header=False
    )
    sockets = [_bind(host, settings.port) for host in settings.listen]
    structlog.get_logger("gpuaas.core").info("serving", listen=settings.listen, port=settings.port)
    asyncio.run(_serve(uvicorn.Server(config), sockets))
    db.close()


async def _serve(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
    await server.serve(sockets=sockets)


@app.command
def admin(email: str, *, password_stdin: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Make (or give a new password to) the platform administrator. The password is read from standard input.

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
    """Bring the store to the newest schema, or back to an older one (what only newer ones hold is lost).

    Parameters
    ----------
    down_to
        a revision, or `base` for an empty store
    """
    settings = Settings.read()
    if down_to is None:
        _open(settings).close()
    else:
        downgrade(settings.database_url, down_to)


@app.command
def contracts(folder: Path = Path("contracts"), *, check: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Write OpenAPI, AsyncAPI, permissions, access matrix, errors, lifecycles, manifest schema; or --check them."""
    stale = write_contracts(folder, check=check)
    if stale:
        print("Contracts are not fresh: " + ", ".join(stale) + ". Run `make contracts`.", file=sys.stderr)
        raise SystemExit(1)


def _open(settings: Settings) -> Database:
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    migrate(settings.database_url)
    return Database(settings.database_url)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(
        socket.SOL_IP, 15, 1
    ) if family == socket.AF_INET else None  # IP_FREEBIND: address may come later
    listener.bind((host, port))
    listener.set_inheritable(True)
    return listener


def _configure_logs() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )


def main() -> None:
    app()
