"""The profile of an app for the step engine: its name, version, failure codes, services and folders on a host. Each app
has one HostProfile, in its StepContext."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import Failures


@dataclass(frozen=True)
class HostProfile:
    app: str  # names the app's folders on a host: BASE/app and RUN/app
    version: str
    failures: Failures
    units: tuple[str, ...] = ()  # systemd services: their state is read before steps and shown as evidence
    disks: tuple[str, ...] = ("/var/lib", "/var/log", "/tmp", "/run", "/etc", "/")  # noqa: S108 - checked for free space
    unit_logs: Mapping[str, str] = field(default_factory=dict[str, str])  # service -> log file outside the journal
    base: str = "/var/lib"
    run: str = "/run"
