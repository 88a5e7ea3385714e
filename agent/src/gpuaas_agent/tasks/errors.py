"""How a task ends badly.

TaskError
├── TaskRefused     it is not something this host may be told: nothing was done
├── TaskFailed      it was tried and did not work
└── TaskStopped     it was left at a safe point: out of time, or the lease is gone
"""


class TaskError(Exception):
    outcome = "failed"


class TaskRefused(TaskError):
    outcome = "refused"


class TaskFailed(TaskError):
    outcome = "failed"


class TaskStopped(TaskError):
    outcome = "interrupted"
