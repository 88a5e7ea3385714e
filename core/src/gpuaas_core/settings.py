"""Settings of the core, read from environment variables."""

import os
from dataclasses import dataclass
from pathlib import Path

from .kit.clock import Durations

CONSOLE = Path(__file__).parent / "console_files"  # written by `make console`


@dataclass(frozen=True)
class Settings:
    data_dir: Path
    database_url: str
    listen: tuple[str, ...]
    port: int
    custody: str  # holder of the master key: embedded, openbao, pkcs11
    custody_cache_s: float  # how long an unwrapped data key is cached
    public_url: str  # the platform's address for people and browsers
    metrics: str  # host:port of GET /metrics; empty: not served
    otlp_endpoint: str  # http(s)://host:port for the core's own spans and log lines; empty: not sent
    otlp_headers: str  # name=value,name=value
    nats: str  # nats://host:port to forward events to; empty: not forwarded
    artifacts: Path  # the folder of the artifact store and of its cache of sources
    artifacts_largest: int  # bytes of one artifact
    artifacts_quota: int  # bytes per tenant in the artifact store
    artifacts_cache: int  # bytes of the cache of sources
    console: Path  # the folder of the built web console
    durations: Durations

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
            artifacts=Path(os.environ.get("GPUAAS_CORE_ARTIFACTS", data / "artifacts")).absolute(),
            artifacts_largest=int(os.environ.get("GPUAAS_CORE_ARTIFACTS_LARGEST", 10 * 1024**3)),
            artifacts_quota=int(os.environ.get("GPUAAS_CORE_ARTIFACTS_QUOTA", 50 * 1024**3)),
            artifacts_cache=int(os.environ.get("GPUAAS_CORE_ARTIFACTS_CACHE", 20 * 1024**3)),
            console=Path(os.environ.get("GPUAAS_CORE_CONSOLE", CONSOLE)).absolute(),
            durations=Durations(
                lease_s=int(os.environ.get("GPUAAS_CORE_LEASE_S", "30")),
                node_key_s=int(os.environ.get("GPUAAS_CORE_MACHINE_IDENTITY_S", "86400")),
            ),
        )

    @property
    def checkpoints(self) -> Path:
        """The folder of the audit checkpoints, which are files outside the database."""
        return self.data_dir / "checkpoints"
