"""Settings of the core, from the environment: one place, few names, good defaults."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    data_dir: Path
    database_url: str
    listen: tuple[str, ...]
    port: int
    metrics: str  # host:port of GET /metrics; empty: not served
    lease_s: int  # how long a controller holds an operation without a heartbeat

    @property
    def metrics_address(self) -> tuple[str, int]:
        host, _, port = self.metrics.rpartition(":")
        return host.strip("[]") or "127.0.0.1", int(port)

    @classmethod
    def read(cls) -> "Settings":
        data = Path(os.environ.get("GPUAAS_CORE_DATA", "var/core")).absolute()
        return cls(
            data_dir=data,
            database_url=os.environ.get("GPUAAS_CORE_DATABASE", f"sqlite:///{data}/core.db"),
            listen=tuple(os.environ.get("GPUAAS_CORE_LISTEN", "127.0.0.1").split(",")),
            port=int(os.environ.get("GPUAAS_CORE_PORT", "8080")),
            metrics=os.environ.get("GPUAAS_CORE_METRICS", ""),
            lease_s=int(os.environ.get("GPUAAS_CORE_LEASE_S", "30")),
        )

    @property
    def checkpoints(self) -> Path:
        """Where the audit checkpoints lie: beside the store by default, never in it."""
        return self.data_dir / "checkpoints"
