"""Errors of tasks."""

from ..kit.problems import Problem


class TaskKindUnknown(Problem):
    status, code, title = 422, "task_kind_unknown", "There is no such task for you to ask for"
    way_out = "Choose a kind of contracts/node-tasks.json that says `asked_by: controller`."


class TaskInvalid(Problem):
    status, code, title = 422, "task_invalid", "The arguments do not fit the kind of task"
    way_out = "Correct the places listed in `errors`; the schemas are in contracts/node-tasks.json."


class StaleTask(Problem):
    status, code, title = 409, "stale_task", "This attempt of the task is no longer the machine's"
    way_out = "Stop at the next safe point and ask for the next task: the platform ended it or handed it out again."


class TooManyTasks(Problem):
    status, code, title = 409, "too_many_tasks", "The machine has too many tasks waiting"
    retryable = True
    way_out = "Wait until some of them have ended (`gpuaas task list NODE`), then ask again."


class AgentTooOld(Problem):
    status, code, title = 409, "agent_too_old", "The machine's agent knows no tasks"
    way_out = "Install the agent anew on the machine: `gpuaas node readmit NAME` prints the line to run there."


class NothingToWipe(Problem):
    status, code, title = 409, "nothing_to_wipe", "Nothing on this machine waits to be wiped"
    way_out = "A machine is wiped when its allocation is released (`gpuaas allocation release`)."


class WipeUnderWay(Problem):
    status, code, title = 409, "wipe_under_way", "The machine is being wiped"
    way_out = "Wait for its end (`gpuaas task list NODE`); only then can it be wiped again."
