"""All paths that the agent uses, below one root: "/" on a host, a folder in tests."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Places:
    root: Path = Path("/")

    @property
    def config(self) -> Path:
        return self.root / "etc/gpuaas/agent.json"

    @property
    def state(self) -> Path:
        return self.root / "var/lib/gpuaas-agent"

    @property
    def key(self) -> Path:
        return self.state / "key.pem"

    @property
    def next_key(self) -> Path:
        return self.state / "next.pem"

    @property
    def former_key(self) -> Path:
        return self.state / "former.pem"

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def node(self) -> Path:
        return self.state / "node.json"

    @property
    def trust(self) -> Path:
        return self.state / "trust.json"

    @property
    def tasks(self) -> Path:
        """The folder with the state of tasks: the current task, unsent results, claim epochs, and what tasks
        created."""
        return self.state / "tasks"

    @property
    def epochs(self) -> Path:
        """The folder that records which claim epochs of an operation this host has received, one empty file per
        epoch."""
        return self.state / "epochs"

    @property
    def sessions(self) -> Path:
        """The folder with one note per login. A reboot deletes the folder, as it ends the sessions."""
        return self.root / "run/gpuaas-agent/sessions"

    @property
    def home(self) -> Path:
        """The agent's own folder."""
        return self.root / "opt/gpuaas-agent"

    @property
    def releases(self) -> Path:
        return self.home / "releases"

    @property
    def current(self) -> Path:
        return self.home / "current"

    @property
    def trial(self) -> Path:
        return self.home / "trial.json"

    @property
    def outcome(self) -> Path:
        return self.home / "outcome.json"

    @property
    def ssh(self) -> Path:
        return self.root / "etc/ssh/gpuaas"

    @property
    def sshd_drop_in(self) -> Path:
        return self.root / "etc/ssh/sshd_config.d/50-gpuaas.conf"

    @property
    def host_key(self) -> Path:
        return self.root / "etc/ssh/ssh_host_ed25519_key"

    @property
    def host_public_key(self) -> Path:
        return self.root / "etc/ssh/ssh_host_ed25519_key.pub"
