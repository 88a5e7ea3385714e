"""The failure codes of this app's operations: for each code, what a person can do and whether a retry can help.

They extend the codes that all apps share (gpuaas_sdk.host_steps.errors).
"""

import re

from gpuaas_sdk.host_steps.errors import RETRY, Failures, Meaning
from gpuaas_sdk.host_steps.validate import BadWord

NEW_KEY = (
    "Restart the worker (`gpuaas member restart`), or the instance if the host is the controller's: the host gets a"
    " new key"
)
RETRY_UPDATE = "then run `gpuaas operation retry {operation}`; or update the instance with its former inputs."
WAYS_OUT: dict[str, tuple[str, bool]] = {
    "package_missing": (
        "Install the packages that the message names, or build a package set (`gpuaas-slurm packages build`), " + RETRY,
        True,
    ),
    "packages_not_delivered": (
        "Check that the node's agent runs and the artifact's source is reachable (`gpuaas task list NODE`), " + RETRY,
        True,
    ),
    "clock_wrong": ("Set the host's clock (for example with `timedatectl set-ntp true`), " + RETRY, True),
    "preflight_failed": ("Fix the problem that the message names, or choose another allocation, " + RETRY, True),
    "gpus_missing": ("Restore the GPU and its driver, or remove the worker, " + RETRY, True),
    "port_in_use": ("Stop the program that uses the port, " + RETRY, True),
    "keys_differ": (f"{NEW_KEY}; {RETRY}", True),
    "accounting_not_ready": (
        "Read the last log lines of slurmdbd and MariaDB in the evidence, fix the cause, " + RETRY,
        True,
    ),
    "job_proof_failed": ("Read the job's output in the evidence, repair the host, " + RETRY, True),
    "cluster_name_fixed": (
        "Update the instance with the cluster's current name. For another name, decommission the instance and deploy a "
        "new instance.",
        False,
    ),
    "drained_by_person": ("Ask the person who drained the worker in Slurm to undrain it, " + RETRY, True),
    "settings_refused": (
        "Update the instance with other values (`gpuaas instance update`); until then the former values apply.",
        False,
    ),
    "controller_version": (
        "Run the controller version that the message names for this project, " + RETRY,
        True,
    ),
    "partition_in_use": ("Wait until the jobs in the message end, or move or cancel them, " + RETRY_UPDATE, True),
    "workers_busy": (
        "Wait until the jobs in the message end, or drain the workers first (`gpuaas member drain`), " + RETRY_UPDATE,
        True,
    ),
    "state_unavailable": (
        "Restore the database or the disk on which the controller keeps its journal (section 5 of its runbook), "
        + RETRY,
        True,
    ),
}
UNREACHABLE_MEMBER = (
    "Bring the host back, then run `gpuaas operation retry {operation}`. If a worker's host is lost for good:"
    ' `gpuaas member VERB … --host-is-gone --reason "…"` removes the worker without access to its host.'
)
UNREACHABLE_TEARDOWN = (
    "Bring the host back, then run `gpuaas operation retry {operation}`. If the host is lost for good: `gpuaas"
    ' operation abandon {operation} --reason "…"` ends the teardown and leaves an orphan record for every node.'
)
ON_A_RUNNING_CLUSTER = (
    *("stop", "start", "restart", "rotate_keys", "reconfigure", "upgrade", "rollback", "add_member", "drain_member"),
    *("undrain_member", "restart_member", "remove_member"),
)
BY_KIND: dict[tuple[str, str], str] = {
    ("host_unreachable", "decommission"): UNREACHABLE_TEARDOWN,
    ("host_unreachable", "replace_member"): UNREACHABLE_MEMBER.replace("VERB", "replace"),
    **{("host_unreachable", kind): UNREACHABLE_MEMBER.replace("VERB", "remove") for kind in ON_A_RUNNING_CLUSTER},
}
# Detected before anything was changed: the cluster runs as before.
NOTHING_CHANGED = frozenset(
    {
        "controller_version",
        "inputs_invalid",
        "cluster_name_fixed",
        "settings_refused",
        "partition_in_use",
        "workers_busy",
    }
)

# Output of Slurm, munge and MariaDB with a known cause. The order matters: a wrong clock makes munge print more than a
# wrong key does.
MEANINGS = (
    Meaning(
        re.compile(r"(Rewound|Expired) credential|clock skew", re.IGNORECASE),
        "clock_wrong",
        "The clocks of {host} and of the controller's host are too far apart, so munge rejects messages between the"
        " two hosts.",
    ),
    Meaning(
        re.compile(r"Invalid credential|Unauthorized credential|Protocol authentication error", re.IGNORECASE),
        "keys_differ",
        "{host} has a different munge key from the rest of the cluster, so the hosts reject each other's messages.",
    ),
    Meaning(
        re.compile(r"gres/gpu count (reported lower than configured|too low)|can't stat gres.conf file", re.IGNORECASE),
        "gpus_missing",
        "{host} has fewer GPUs than it had when it joined: a device file is missing.",
    ),
    Meaning(
        re.compile(r"Zero Bytes were transmitted", re.IGNORECASE),
        "keys_differ",
        "{host} and the controller's host reject each other's messages: their munge keys or clocks differ.",
    ),
    Meaning(
        re.compile(r"mysql_real_connect failed|Can't connect to (local )?(MySQL )?server", re.IGNORECASE),
        "accounting_not_ready",
        "MariaDB on {host} does not answer, so slurmdbd cannot store accounting records.",
    ),
)


class BadPlan(ValueError):
    """The members of the instance do not form a cluster that this version can build."""


class BadConfig(ValueError):
    """The rendered configuration file is invalid and must not be written to a host."""


FAILURES = Failures(
    ways_out=WAYS_OUT,
    by_kind=BY_KIND,
    meanings=MEANINGS,
    nothing_changed=NOTHING_CHANGED,
    counted=frozenset({"step_failed", "accounting_not_ready", "job_proof_failed", "packages_not_delivered"}),
    input_errors=(BadWord, BadPlan, BadConfig),
)
