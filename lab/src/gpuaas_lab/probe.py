"""Waits, for a bounded time, until a host's sshd responds, and reports the console output if it does not."""

import socket
import time

from gpuaas_lab.machine import Machine

GREETS_WITHIN_S = 5  # once it has taken the connection: a busy machine starts its process late


def wait_for_sshd(machine: Machine, deadline: float) -> None:
    address = str(machine.plan.address(machine.record.number))
    while not sshd_speaks(address):
        if not machine.running:
            raise machine.did_not_boot("it switched itself off")
        if time.monotonic() > deadline:
            raise machine.did_not_boot("its sshd did not answer in time")
        time.sleep(0.05)


def sshd_speaks(address: str, port: int = 22, timeout: float = 1) -> bool:
    """Return True if sshd sends its greeting. An open port is not enough: the greeting proves that sshd has loaded its
    keys."""
    try:
        with socket.create_connection((address, port), timeout=timeout) as connection:
            connection.settimeout(max(timeout, GREETS_WITHIN_S))
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False
