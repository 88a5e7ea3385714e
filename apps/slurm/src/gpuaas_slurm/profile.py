"""The app's profile for the SDK's step engine: its name, its services, its failure codes."""

from gpuaas_sdk.host_steps.profile import HostProfile

from gpuaas_slurm import PROGRAM, __version__
from gpuaas_slurm.errors import FAILURES

UNITS = ("munge", "mariadb", "slurmdbd", "slurmctld", "slurmd")
DISKS = (
    "/var/lib/mysql",
    "/var/lib/slurm/*",
    f"/var/lib/{PROGRAM}",
    "/var/lib",
    "/var/log/slurm",
    "/var/log",
    "/var/tmp",  # noqa: S108
    "/tmp",  # noqa: S108
    "/run",
    "/home",
    "/etc/slurm",
    "/etc/munge",
    "/etc/mysql",
    "/etc/systemd/system",
    f"/etc/{PROGRAM}",
    "/etc",
    "/usr/lib",
    "/",
)
PROFILE = HostProfile(
    app=PROGRAM,
    version=__version__,
    failures=FAILURES,
    units=UNITS,
    disks=DISKS,
    unit_logs={"mariadb": "/var/log/mysql/error.log"},
)
