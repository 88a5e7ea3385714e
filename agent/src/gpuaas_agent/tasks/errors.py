"""Errors of a task.

TaskError
├── TaskRefused     not a valid task for this host: nothing was done
├── TaskFailed      it was run and failed
└── TaskStopped     it was stopped at a safe point: out of time, or the lease was lost
"""


class TaskError(Exception):
    outcome = "failed"


class TaskRefused(TaskError):
    outcome = "refused"


class TaskFailed(TaskError):
    outcome = "failed"


class TaskStopped(TaskError):
    outcome = "interrupted"
