"""The task that runs a systemctl action (start, stop, enable …) on a systemd unit and reports the unit's state."""

from typing import Any

from gpuaas_agent.tasks.work import Work

SYSTEMCTL = "/usr/bin/systemctl"
AFTER_RELOAD = ("start", "restart", "enable", "reload")
SHOWN = ("ActiveState", "SubState", "UnitFileState", "MainPID", "Result")


def act(work: Work) -> dict[str, Any]:
    unit, action = work.arguments["unit"], work.arguments["action"]
    work.ledger.note(unit=unit)
    if action in AFTER_RELOAD:
        with work.step("daemon-reload"):
            work.must([SYSTEMCTL, "daemon-reload"])
    with work.step(f"{action} {unit}"):
        output = work.must([SYSTEMCTL, "--no-ask-password", action, "--", unit])
    return {"unit": unit, "action": action, "said": output[-2000:], "is": shown(work, unit)}


def shown(work: Work, unit: str) -> dict[str, str]:
    _, text = work.run([SYSTEMCTL, "show", "--no-pager", f"--property={','.join(SHOWN)}", "--", unit])
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
