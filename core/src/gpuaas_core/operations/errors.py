"""Errors of operations and claims."""

from ..kit.problems import Problem


class OperationLive(Problem):
    status, code, title = 409, "operation_live", "Another operation is in progress"
    way_out = "Wait until the operation in `operation_id` ends, or cancel that operation."


class NotRetryable(Problem):
    status, code, title = 409, "not_retryable", "This operation cannot be retried"
    way_out = "Start a new operation. Only the newest operation can be retried, after it failed or was canceled."


class NotCancelable(Problem):
    status, code, title = 409, "not_cancelable", "This operation cannot be canceled"
    way_out = "If the operation has ended, start a new operation. If it was already asked to stop, wait until it ends."


class StaleClaim(Problem):
    status, code, title = 409, "stale_claim", "You no longer hold this claim"
    way_out = "Stop working on the operation: it has ended, was released, or has a newer claim."


class ReportNotOfTarget(Problem):
    status, code, title = 422, "report_not_of_target", "The report has fields that do not apply to its target"
    way_out = "Omit the fields named in `detail`; contracts/openapi.json lists the fields of a report."
