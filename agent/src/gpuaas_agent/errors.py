"""What can go wrong on a host, and whether trying again helps.

AgentError
├── NotConfigured              no API address or token yet: somebody must write the config file
├── Unreachable                the platform did not answer: try again, with patience
├── Refused                    the platform answered no (status, code, way out)
│   └── TokenInvalid           the enrolment token is used up: a new one is needed
├── TrustInvalid               what we were told to trust does not look right: nothing was changed
├── SshdRefused                sshd does not accept the files: everything was put back
└── UpgradeRefused             this is no version of the agent to be tried: nothing was changed
"""

from typing import Any


class AgentError(Exception):
    def __init__(self, sentence: str, way_out: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.way_out = way_out


class NotConfigured(AgentError):
    pass


class Unreachable(AgentError):
    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} does not answer: {why}", "Nothing to do here; the agent keeps trying.")


class Refused(AgentError):
    def __init__(
        self, status: int, code: str, detail: str, way_out: str, problem: dict[str, Any] | None = None
    ) -> None:
        super().__init__(f"{detail} ({status} {code})", way_out)
        self.status = status
        self.code = code
        self.problem = problem or {}


class TokenInvalid(Refused):
    pass


class TrustInvalid(AgentError):
    def __init__(self, what: str) -> None:
        super().__init__(
            f"The platform sent trust that is not applied: {what}.",
            "Nothing was changed on this host. Report it together with the agent's log.",
        )


class SshdRefused(AgentError):
    def __init__(self, why: str) -> None:
        super().__init__(
            f"sshd does not accept the new configuration, so the former one was put back: {why}",
            "Look at /etc/ssh/sshd_config for a setting that contradicts it; the agent tries again by itself.",
        )


class UpgradeRefused(AgentError):
    def __init__(self, why: str) -> None:
        super().__init__(why, "Nothing was changed. Get the archive and its digest from the platform: GET /v1/agent.")
