"""Renders the serials of revoked certificates as a key revocation list for sshd (PROTOCOL.krl of OpenSSH).

It does not use ssh-keygen, because equal serials must give an identical file, so that sshd's files change only when
needed. A file that sshd cannot read would lock every user out, so ssh-keygen checks it before sshd uses it (sshd.py).
"""

import struct
from collections.abc import Iterable

MAGIC = b"SSHKRL\n\x00"
FORMAT = 1
CERTIFICATES, SERIAL_LIST = b"\x01", b"\x20"
ANY_AUTHORITY = b""


def revocation_list(serials: Iterable[int]) -> bytes:
    listed = sorted(set(serials))
    version = date = flags = 0
    head = MAGIC + struct.pack(">IQQQ", FORMAT, version, date, flags) + _string(b"") + _string(b"gpuaas")
    if not listed:
        return head
    numbers = _string(struct.pack(f">{len(listed)}Q", *listed))
    return head + CERTIFICATES + _string(_string(ANY_AUTHORITY) + _string(b"") + SERIAL_LIST + numbers)


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
