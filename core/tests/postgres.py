"""A PostgreSQL of our own for the tests: Debian's programs, a cluster in a temporary folder, a socket and no network.

`GPUAAS_TEST_DATABASE=postgresql` runs the whole suite on it. One cluster per pytest session, shared by its workers; it
ends with the process that started it, however that ends, and the next session removes the folder a crash left behind.
"""

import contextlib
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

CHOSEN = os.environ.get("GPUAAS_TEST_DATABASE", "sqlite") == "postgresql"
PROGRAMS = Path("/usr/lib/postgresql/15/bin")
PLACE = "GPUAAS_TEST_POSTGRES_FOLDER"
PREFIX, OWNER, PORT = "gpuaas-postgres-", "owner.pid", 5433  # the port only names the socket


class Cluster:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        (self.folder / OWNER).write_text(str(os.getpid()))
        if os.getuid() == 0:
            os.chown(self.folder, _account().pw_uid, _account().pw_gid)
        initdb = [PROGRAMS / "initdb", "-D", self.folder / "data", "-U", "gpuaas", "-A", "trust", "-E", "UTF8"]
        words = ["--locale=C.UTF-8", "--no-sync"]  # the cluster itself runs with fsync on
        subprocess.run([*_as_postgres(), *initdb, *words], check=True, stdout=subprocess.DEVNULL)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.folder,
            "port": PORT,
            "max_connections": 200,
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*_as_postgres(), PROGRAMS / "postgres", "-D", self.folder / "data", *options], stdout=log, stderr=log
            )
        os.environ[PLACE] = str(self.folder)
        self._wait()

    def _wait(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                return connect("postgres").close()
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "PostgreSQL did not start within 30 s"
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)  # fast shutdown: do not wait for clients
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGQUIT)
                self.process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.environ.pop(PLACE, None)


def remove_leftovers() -> None:
    """Folders whose pytest is gone; the server in them went with it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            if not Path(f"/proc/{int((folder / OWNER).read_text())}").exists():
                shutil.rmtree(folder, ignore_errors=True)


def _account() -> pwd.struct_passwd:
    return pwd.getpwnam("postgres")


def _as_postgres() -> list[str]:
    """PostgreSQL refuses to run as root. It gets a fast shutdown when we die, whatever kills us."""
    dies_with_us = ["setpriv", "--pdeathsig", "INT"]
    return (
        [*dies_with_us, "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else dies_with_us
    )


def folder() -> Path:
    return Path(os.environ[PLACE])


def url(database: str) -> str:
    return f"postgresql+psycopg://gpuaas@/{database}?host={folder()}&port={PORT}"


def connect(database: str, **more: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(dbname=database, host=str(folder()), port=PORT, user="gpuaas", autocommit=True, **more)


def database_of(place: Path) -> str:
    """Each test folder has one database, found again by the folder's name."""
    return "t_" + hashlib.sha256(str(place).encode()).hexdigest()[:20]


def create(database: str, template: str = "template0") -> None:
    words = sql.SQL("create database {} template {}").format(sql.Identifier(database), sql.Identifier(template))
    with connect("postgres") as connection:
        connection.execute(words)


def drop(database: str) -> None:
    with connect("postgres") as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(database)))


def copy_out(database: str, tables: list[str]) -> dict[str, bytes]:
    with connect(database) as connection:
        return {table: _copied(connection, table) for table in tables}


def _copied(connection: psycopg.Connection[Any], table: str) -> bytes:
    with connection.cursor().copy(sql.SQL("copy {} to stdout").format(sql.Identifier(table))) as copy:
        return b"".join(bytes(piece) for piece in copy)


def refill(database: str, content: dict[str, bytes]) -> None:
    """Everything as it was when copied out, in one transaction: faster than a new database."""
    with connect(database) as connection, connection.transaction():
        for table in reversed(content):
            connection.execute(sql.SQL("delete from {}").format(sql.Identifier(table)))
        for table, rows in content.items():
            with connection.cursor().copy(sql.SQL("copy {} from stdin").format(sql.Identifier(table))) as copy:
                copy.write(rows)


def files(database: str) -> list[Path]:
    """The database as it lies on the disk."""
    with connect(database) as connection:
        connection.execute("checkpoint")
        (oid,) = connection.execute("select oid from pg_database where datname = current_database()").fetchone() or (0,)
    return [file for file in (folder() / "data" / "base" / str(oid)).iterdir() if file.is_file()]
