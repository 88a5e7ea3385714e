"""Errors of a task.

TaskError
├── TaskRefused     the task is not valid for this host: nothing was done
├── TaskFailed      the task was run and failed
└── TaskStopped     the task was stopped at a safe point: its time limit passed, or its lease was lost
"""


class TaskError(Exception):
    outcome = "failed"


class TaskRefused(TaskError):
    outcome = "refused"


class TaskFailed(TaskError):
    outcome = "failed"


class TaskStopped(TaskError):
    outcome = "interrupted"
