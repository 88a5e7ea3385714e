"""Errors of enrolment."""

from ..kit.problems import Problem


class EnrolmentTokenInvalid(Problem):
    """The enrolment token is not valid. `reused`: the id of the enrolment, if another machine has used the token."""

    status, code, title = 401, "enrolment_token_invalid", "Enrolment token rejected"
    way_out = "Create a new token (POST /v1/tenants/{id}/enrolments). A token works once, within ten minutes."

    def __init__(self, detail: str, *, reused: str | None = None) -> None:
        super().__init__(detail)
        self.reused = reused
