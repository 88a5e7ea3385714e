"""Fills a host's disk so that it gets "no space left on device", and frees it again."""

from typing import TYPE_CHECKING

from gpuaas_lab.errors import HostNeedsDisk, LabError
from gpuaas_lab.state import HostRecord

if TYPE_CHECKING:
    from gpuaas_lab.hosts import Lab

PROBE = "/var/tmp/gpuaas-lab-probe"  # noqa: S108
FILLER = "/var/tmp/gpuaas-lab-filler"  # noqa: S108 - inside the host, our own name
# Large blocks first, then to the last byte.
FILL = f"dd if=/dev/zero of={FILLER} bs=1M status=none; dd if=/dev/zero of={FILLER}.rest bs=512 status=none; true"


def fill(lab: "Lab", record: HostRecord) -> None:
    if not record.disk_mb:
        raise HostNeedsDisk(record.name)
    lab.exec(record.name, ["sh", "-c", FILL], timeout=120)
    if lab.exec(record.name, ["sh", "-c", f"echo full > {PROBE}"]).exit == 0:
        raise LabError(f"The disk of '{record.name}' could not be filled.", "Check `df /` on the host.")


def free(lab: "Lab", record: HostRecord) -> None:
    lab.exec(record.name, ["rm", "-f", FILLER, f"{FILLER}.rest", PROBE])
