"""The steps that prove the cluster: an ordinary user runs real jobs before the cluster is reported ready.

The results are written to the operation's report on the host, so that a resumed process finds them there.
"""

from collections.abc import Iterable

from gpuaas_sdk.host_steps.step import Step

from gpuaas_slurm import validate
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.slurm import jobs, nodes
from gpuaas_slurm.slurm.hints import COMMANDS


def header(plan: Plan, partition: str, gpu: str | None) -> str:
    """Return the #SBATCH lines of a batch script for this partition and, if `gpu` is given, for one GPU of this
    type."""
    minutes = next((one.minutes for one in plan.partitions if one.name == partition), plan.partitions[0].minutes)
    lines = [f"--account={plan.account}", f"--partition={partition}", f"--time={minutes}"]
    lines += [f"--gres=gpu:{gpu}:1"] if gpu else []
    return "".join(f"#SBATCH {line}\n" for line in lines)


def try_header(plan: Plan, partition: str, gpu: str | None) -> str:
    """Return shell text that prints `@header partition|gpu|exit`. `exit` is 0 if Slurm would accept a script with this
    header."""
    words = validate.word("partition", partition), validate.word("gpu_type", gpu) if gpu else ""
    return f"""
code=0
(cd /tmp && timeout 10 runuser -u {plan.user} -- sbatch --test-only >/dev/null 2>&1) <<'JOB' || code=$?
#!/bin/bash
{header(plan, partition, gpu)}true
JOB
say header "{words[0]}|{words[1]}|$code"
"""


def first_job(plan: Plan) -> Step:
    workers = len(plan.workers)
    job = jobs.as_user(plan, f"timeout 20 srun {jobs.options(plan, workers)} -J gpuaas-proof hostname")
    return Step(
        name="first_job",
        title="Running the first job",
        phase="proving",
        probe='[ -s "$REPORT/first_job" ]',
        act=f"""
output=$({job})
[ "$(wc -l <<<"$output")" = {workers} ] || {{ echo "the job printed: $output"; exit 1; }}
printf '%s|%s\\n' "$(now_ms)" "$(echo $output)" >"$REPORT/first_job"
""",
        unit="slurmctld",
        code="job_proof_failed",
        undo="forget",
    )


def batch_job(plan: Plan) -> Step:
    """Return the step that runs a batch job and waits for its accounting record. The job itself checks its user and
    account, because it may run on another host whose files cannot be read from here.

    slurmctld makes its first scheduling pass 3 s after its start (22.05 reads batch_sched_delay only then).
    """
    check = f'[ "$SLURM_JOB_ACCOUNT $(id -un)" = "{plan.account} {plan.user}" ]'
    wrap = f"--wrap '{check}' --output /dev/null -J gpuaas-proof"
    submit = jobs.as_user(plan, f"timeout 20 sbatch --parsable {jobs.options(plan)} {wrap}")
    return Step(
        name="batch_job",
        title="Running a batch job and reading its accounting record",
        phase="proving",
        probe='[ -s "$REPORT/batch_job" ]',
        act=f"""
job=$({submit})
recorded() {{ {jobs.show_record_state('"$job"')} | grep -Eqx '(COMPLETED|FAILED)'; }}
wait_until 40 recorded || {{ {jobs.show('"$job"')}; {jobs.show_record('"$job"')}; exit 1; }}
{jobs.show_record_state('"$job"')} | grep -qx COMPLETED
printf '%s|%s\\n' "$job" COMPLETED >"$REPORT/batch_job"
""",
        within=5,
        unit="slurmctld",
        code="job_proof_failed",
        undo="forget",
    )


def gpu_job(plan: Plan, gpus: int) -> Step:
    """Return the step that runs a job on a GPU. Without GPUs the step only writes to the report that there is none."""
    ask = "--gres=gpu:1 -J gpuaas-proof"
    job = jobs.as_user(plan, f"timeout 20 srun {jobs.options(plan)} {ask} printenv CUDA_VISIBLE_DEVICES")
    proof = f'output=$({job})\n[[ "$output" =~ ^[0-9]+$ ]] || {{ echo "the job saw: $output"; exit 1; }}'
    return Step(
        name="gpu_job",
        title="Running a job on a GPU" if gpus else "Noting that the host has no GPU",
        phase="proving",
        probe='[ -s "$REPORT/gpu_job" ]',
        act=(proof if gpus else "output=none") + f'\nprintf \'%s|%s\\n\' {gpus} "$output" >"$REPORT/gpu_job"',
        unit="slurmd",
        code="job_proof_failed",
        undo="forget",
    )


def access(plan: Plan, gpu_types: Iterable[str]) -> Step:
    """Return the step that runs every command of the access bundle as the cluster's user, before the bundle is
    shown."""
    tries = [try_header(plan, plan.partition, gpu) for gpu in (None, *gpu_types)]
    headers = "".join(f"({one}) | sed 's/^@header /header|/' &\n" for one in tries)
    runs = "\n".join(
        f"(code=0; {jobs.as_user(plan, 'timeout 10 ' + c)} >/dev/null 2>&1 || code=$?; echo 'command|{c}|'$code) &"
        for c in COMMANDS
    )
    return Step(
        name="access",
        title="Testing every command of the access bundle",
        phase="proving",
        probe='[ -s "$REPORT/access" ]',
        act=f"""
{{
  for d in slurmctld slurmd slurmdbd; do printf 'version|%s|%s\\n' $d "$($d -V)"; done
  printf 'version|munge|%s\\n' "$(munged -V | head -1)"
  printf 'version|mariadb|%s\\n' "$(mariadbd --version | head -1)"
  {runs}
  {headers}
  wait
  printf 'nodes|%s\\n' "$({nodes.list_names_and_states()} | tr '\\n' ' ')"
}} >"$REPORT/access.new"
! grep -E '^(command|header)\\|.*\\|[1-9][0-9]*$' "$REPORT/access.new" || exit 1
mv "$REPORT/access.new" "$REPORT/access"
""",
        unit="slurmctld",
        code="job_proof_failed",
        undo="forget",
    )


COLLECT = """
for f in first_job batch_job gpu_job access; do
  while IFS= read -r line; do say "$f" "$line"; done <"$REPORT/$f"
done
exit 0
"""
