"""Errors of operations and claims."""

from ..kit.problems import Problem


class OperationLive(Problem):
    status, code, title = 409, "operation_live", "Another operation is under way"
    way_out = "Wait for it or cancel it; its id is in `operation_id`."


class NotRetryable(Problem):
    status, code, title = 409, "not_retryable", "This operation cannot be retried"
    way_out = "Only the newest operation of its target can be retried, and only after it failed or was canceled."


class NotCancelable(Problem):
    status, code, title = 409, "not_cancelable", "This operation cannot be canceled"
    way_out = "It has ended; ask for a new operation instead."


class StaleClaim(Problem):
    status, code, title = 409, "stale_claim", "This claim is no longer yours"
    way_out = "Stop working on it: another controller (or a newer claim) holds the operation."


class ReportNotOfTarget(Problem):
    status, code, title = 422, "report_not_of_target", "The report has fields that this kind of target does not have"
    way_out = "Leave out the fields named in `detail`; contracts/openapi.json lists the fields of a report."
