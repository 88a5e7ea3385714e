"""A private PostgreSQL server for tests: no existing server is needed or changed.

It listens on a socket in its folder and ends with the process that started it, even if that is killed. The next server
removes folders that a crash left behind.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
PREFIX, OWNER, PORT = "gpuaas-postgres-", "owner.pid", 5433  # the port only names the socket
USER = "gpuaas"


# Of a store that needs to outlive its processes only, not the power of its machine.
UNFLUSHED = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Cluster:
    def __init__(self, *, flushed: bool = True) -> None:
        self.flushed = flushed
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        (self.folder / OWNER).write_text(str(os.getpid()))
        if os.getuid() == 0:
            os.chown(self.folder, _account().pw_uid, _account().pw_gid)
        initdb = [PROGRAMS / "initdb", "-D", self.folder / "data", "-U", USER, "-A", "trust", "-E", "UTF8"]
        words = ["--locale=C.UTF-8", "--no-sync"]  # whether the cluster itself flushes is `flushed`
        subprocess.run([*_as_postgres(), *initdb, *words], check=True, stdout=subprocess.DEVNULL)
        self.serve()

    def serve(self) -> None:
        """Start the server, also again after `halt`."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.folder,
            "port": PORT,
            "max_connections": 200,
        }
        settings |= {} if self.flushed else UNFLUSHED
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*_as_postgres(), PROGRAMS / "postgres", "-D", self.folder / "data", *options], stdout=log, stderr=log
            )
        self._wait()

    def _wait(self) -> None:
        assert self.process is not None
        asked = [str(PROGRAMS / "pg_isready"), "-q", "-h", str(self.folder), "-p", str(PORT), "-d", "postgres"]
        deadline = time.monotonic() + 120
        while subprocess.run(asked, check=False, timeout=20).returncode != 0:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "PostgreSQL did not start within two minutes"
            time.sleep(0.05)

    def halt(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)  # fast shutdown: do not wait for clients
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(10)
        self.process = None

    def stop(self) -> None:
        self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@/{database}?host={self.folder}&port={PORT}"


def remove_leftovers() -> None:
    """Delete folders whose process has ended; their server ended with it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            if not Path(f"/proc/{int((folder / OWNER).read_text())}").exists():
                shutil.rmtree(folder, ignore_errors=True)


def _account() -> pwd.struct_passwd:
    return pwd.getpwnam("postgres")


def _as_postgres() -> list[str]:
    """Return the prefix that runs a command as user postgres, since PostgreSQL refuses to run as root. The server gets
    a fast shutdown when this process dies."""
    dies_with_us = ["setpriv", "--pdeathsig", "INT"]
    return (
        [*dies_with_us, "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else dies_with_us
    )
