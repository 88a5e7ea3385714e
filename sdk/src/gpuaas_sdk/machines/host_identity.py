"""Is this the host we were promised? The check that asyncssh leaves out, used by machines.py on every connection.

asyncssh 2.24 accepts a host certificate without principals, which would be valid for every host. So the certificate is
looked at here first, before anything is sent to the host: it must name the node we mean. asyncssh then checks
the rest (signed by our host CA, a host certificate, valid now). `proven` tells that this check was really asked.
"""

from __future__ import annotations

import asyncssh
from asyncssh.public_key import SSHOpenSSHCertificate, decode_ssh_certificate


class HostCheck:
    def __init__(self, principal: str) -> None:
        if not principal:
            raise ValueError("a host without a principal cannot be identified")
        self._principal = principal
        self.proven = False

    def client(self) -> asyncssh.SSHClient:
        check = self

        class Client(asyncssh.SSHClient):
            def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
                check.guard(conn)

        return Client()

    def guard(self, connection: asyncssh.SSHClientConnection) -> None:
        """Put our check before the connection's own one."""
        theirs = connection.validate_server_host_key

        def ours(key_data: bytes) -> asyncssh.SSHKey:
            self.look(key_data)
            key = theirs(key_data)
            self.proven = True
            return key

        connection.validate_server_host_key = ours  # type: ignore[method-assign]

    def look(self, key_data: bytes) -> None:
        """Refuse whatever does not name our node."""
        try:
            certificate = decode_ssh_certificate(key_data)
        except (asyncssh.KeyImportError, ValueError):
            raise asyncssh.HostKeyNotVerifiable("it shows a bare key instead of a certificate") from None
        principals = list(certificate.principals) if isinstance(certificate, SSHOpenSSHCertificate) else []
        if self._principal not in principals:
            names = ", ".join(principals) or "every host"
            raise asyncssh.HostKeyNotVerifiable(f"its certificate is for {names}")
