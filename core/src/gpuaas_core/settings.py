"""Settings of the core, from the environment: one place, few names, good defaults."""

import os
from dataclasses import dataclass
from pathlib import Path

CONSOLE = Path(__file__).parent / "console_files"  # where `make console` puts it


@dataclass(frozen=True)
class Settings:
    data_dir: Path
    database_url: str
    listen: tuple[str, ...]
    port: int
    custody: str  # who holds the master key: embedded, openbao, pkcs11
    custody_cache_s: float  # how long an opened data key is used before the holder is asked again
    public_url: str  # where people and their browsers find the platform
    metrics: str  # host:port of GET /metrics; empty: not served
    otlp_endpoint: str  # http(s)://host:port to send own spans and log lines to; empty: to nobody
    otlp_headers: str  # name=value,name=value
    nats: str  # nats://host:port to hand events on to; empty: to nobody
    lease_s: int  # how long a controller holds an operation without a heartbeat
    artifacts: Path  # the folder of the core's own artifact store and of what it read from sources
    artifacts_largest: int  # bytes of one artifact
    artifacts_quota: int  # bytes a tenant keeps in the store
    artifacts_cache: int  # bytes of what was read from sources
    console: Path  # the folder of the built web console
    machine_identity_s: int  # how long a key of a machine lives; it is renewed at two thirds

    @property
    def metrics_address(self) -> tuple[str, int]:
        host, _, port = self.metrics.rpartition(":")
        return host.strip("[]") or "127.0.0.1", int(port)

    @classmethod
    def read(cls) -> "Settings":
        port = int(os.environ.get("GPUAAS_CORE_PORT", "8080"))
        data = Path(os.environ.get("GPUAAS_CORE_DATA", "var/core")).absolute()
        return cls(
            data_dir=data,
            database_url=os.environ.get("GPUAAS_CORE_DATABASE", f"sqlite:///{data}/core.db"),
            listen=tuple(os.environ.get("GPUAAS_CORE_LISTEN", "127.0.0.1").split(",")),
            port=port,
            public_url=os.environ.get("GPUAAS_CORE_URL", f"http://127.0.0.1:{port}").rstrip("/"),
            custody=os.environ.get("GPUAAS_CORE_CUSTODY", "embedded"),
            custody_cache_s=float(os.environ.get("GPUAAS_CORE_CUSTODY_CACHE_S", "300")),
            metrics=os.environ.get("GPUAAS_CORE_METRICS", ""),
            otlp_endpoint=os.environ.get("GPUAAS_CORE_OTLP_ENDPOINT", ""),
            otlp_headers=os.environ.get("GPUAAS_CORE_OTLP_HEADERS", ""),
            nats=os.environ.get("GPUAAS_CORE_NATS", ""),
            lease_s=int(os.environ.get("GPUAAS_CORE_LEASE_S", "30")),
            artifacts=Path(os.environ.get("GPUAAS_CORE_ARTIFACTS", data / "artifacts")).absolute(),
            artifacts_largest=int(os.environ.get("GPUAAS_CORE_ARTIFACTS_LARGEST", 10 * 1024**3)),
            artifacts_quota=int(os.environ.get("GPUAAS_CORE_ARTIFACTS_QUOTA", 50 * 1024**3)),
            artifacts_cache=int(os.environ.get("GPUAAS_CORE_ARTIFACTS_CACHE", 20 * 1024**3)),
            console=Path(os.environ.get("GPUAAS_CORE_CONSOLE", CONSOLE)).absolute(),
            machine_identity_s=int(os.environ.get("GPUAAS_CORE_MACHINE_IDENTITY_S", "86400")),
        )

    @property
    def checkpoints(self) -> Path:
        """Where the audit checkpoints lie: beside the store by default, never in it."""
        return self.data_dir / "checkpoints"
