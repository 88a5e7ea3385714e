"""Errors of tasks."""

from ..kit.problems import Problem


class TaskKindUnknown(Problem):
    status, code, title = 422, "task_kind_unknown", "Unknown task kind"
    way_out = "Use a kind that contracts/node-tasks.json lists with `asked_by: controller`."


class TaskInvalid(Problem):
    status, code, title = 422, "task_invalid", "Invalid task arguments"
    way_out = "Correct the fields listed in `errors`; the schemas are in contracts/node-tasks.json."


class StaleTask(Problem):
    status, code, title = 409, "stale_task", "Stale task attempt"
    way_out = (
        "Stop at the next safe point and request the next task: the platform ended this attempt, or queued the task "
        "again."
    )


class TooManyTasks(Problem):
    status, code, title = 409, "too_many_tasks", "Too many queued tasks for this node"
    retryable = True
    way_out = "Wait until some of the tasks have ended (`gpuaas task list NODE`), then retry."


class AgentTooOld(Problem):
    status, code, title = 409, "agent_too_old", "The node's agent is too old for tasks"
    way_out = "Reinstall the agent: `gpuaas node readmit NAME` prints the command to run on the node."


class NothingToWipe(Problem):
    status, code, title = 409, "nothing_to_wipe", "The node has no pending wipe"
    way_out = "A node is wiped when its allocation is released (`gpuaas allocation release`)."


class WipeUnderWay(Problem):
    status, code, title = 409, "wipe_under_way", "Wipe already in progress"
    way_out = "Wait until the wipe ends (`gpuaas task list NODE`). If it fails, repeat the wipe."
