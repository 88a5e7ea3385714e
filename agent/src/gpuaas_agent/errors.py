"""Errors on a host, and whether a retry helps.

AgentError
├── NotConfigured              no API address or token yet: the operator must write the config file
├── Unreachable                the platform did not respond: retry
├── Refused                    the platform rejected the request (status, code, way out)
│   └── TokenInvalid           the enrolment token was used: a new token is needed
├── TrustInvalid               the received trust is invalid: no file was changed
├── SshdRefused                sshd rejects the new files: the previous files were restored
└── UpgradeRefused             the archive is not an agent version that can be tried: nothing was changed
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
        super().__init__(f"{url} does not respond: {why}", "No action needed; the agent keeps retrying.")


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
            f"The received trust is invalid and was not applied: {what}.",
            "Nothing was changed on this host. Report it together with the agent's log.",
        )


class SshdRefused(AgentError):
    def __init__(self, why: str) -> None:
        super().__init__(
            f"sshd rejected the new configuration, so the previous one was restored: {why}",
            "Check /etc/ssh/sshd_config for a conflicting setting; the agent retries automatically.",
        )


class UpgradeRefused(AgentError):
    def __init__(self, why: str) -> None:
        super().__init__(why, "Nothing was changed. Get the archive and its digest from the platform: GET /v1/agent.")
