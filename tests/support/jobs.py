"""A job of an ordinary user that runs until the test says so: how long anything else takes does not matter to it."""

import secrets

from tests.support.lab_stack import Ground, wait_until


class HeldJob:
    def __init__(self, ground: Ground, head: str, *words: str) -> None:
        """Runs by the time this returns."""
        self.ground, self.head, self.flag = ground, head, f"/tmp/go-{secrets.token_hex(4)}"
        wrap = ("--output", "/dev/null", "--wrap", f"until [ -e {self.flag} ]; do sleep 0.2; done")
        self.id = ground.as_user(head, "sbatch", "--parsable", *words, *wrap).strip()
        wait_until(lambda: self.state == "RUNNING", 180, f"job {self.id} to run")

    @property
    def state(self) -> str:
        return self.ground.on_host(self.head, "squeue", "-h", "-t", "all", "-j", self.id, "-o", "%T").strip()

    def let_go(self, *hosts: str) -> None:
        """Where it may run: it ends by itself."""
        for host in hosts:
            self.ground.on_host(host, "touch", self.flag)

    def ended_well(self) -> None:
        """Accounting hears of it some time after the scheduler."""
        wait_until(lambda: self._accounted() == "COMPLETED", 180, f"job {self.id} to be in the records as completed")

    def _accounted(self) -> str:
        return self.ground.on_host(self.head, "sacct", "-X", "-n", "-P", "-j", self.id, "-o", "State").strip()
