"""Checks the identity of a host before anything is sent to it. Used by machine.py on every connection.

asyncssh 2.24 accepts a host certificate without principals, which would be valid for every host. So this module checks
first that the certificate names the expected node. asyncssh then checks the rest (a host certificate, signed by the
tenant's host CA, valid now). `proven` is True once both checks have run.
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
        """Make this connection run `look` on the host key before asyncssh's own check."""
        theirs = connection.validate_server_host_key

        def ours(key_data: bytes) -> asyncssh.SSHKey:
            self.look(key_data)
            key = theirs(key_data)
            self.proven = True
            return key

        connection.validate_server_host_key = ours  # type: ignore[method-assign]

    def look(self, key_data: bytes) -> None:
        """Raise HostKeyNotVerifiable if the host key is not a certificate for the expected node."""
        try:
            certificate = decode_ssh_certificate(key_data)
        except (asyncssh.KeyImportError, ValueError):
            raise asyncssh.HostKeyNotVerifiable("it shows a bare key instead of a certificate") from None
        principals = list(certificate.principals) if isinstance(certificate, SSHOpenSSHCertificate) else []
        if self._principal not in principals:
            names = ", ".join(principals) or "every host"
            raise asyncssh.HostKeyNotVerifiable(f"its certificate is for {names}")
