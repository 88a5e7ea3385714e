"""Which routes of the API no command of the CLI asks for, and why; and what it takes to have every other one asked for.

Read by test_reach.py, which runs the commands and looks at what they send. A new route needs a command, or a line in
ABSENT that a reader can agree with.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from gpuaas_cli.main import main
from gpuaas_sdk import generate, models
from gpuaas_sdk.client.request import Request

from cli.tests.support.cli_stack import Scene
from cli.tests.test_commands import LOOKING, confirmed
from sdk.tests.support.fake_platform import Call, Platform, wire

CONTRACT = json.loads(generate.CONTRACT.read_text())
Route = tuple[str, str]

AGENT = "asked by a machine's agent, with the machine's own key"
CONTROLLER = "asked by an app's controller that holds the operation, or looks between two"
BROWSER = "for browsers: cookies and redirects"
PROBE = "for load balancers"
EXPORTER = "for OpenTelemetry exporters"
OPERATION = "/v1/projects/{project_id}/operations"
MANY = "asked by the console and by automation; the commands name one member"
ANY_SCOPE = "the same as below a project, for operations that are in none"
ABSENT: dict[Route, str] = {
    **{
        ("POST", f"/v1/projects/{{project_id}}/instances/{{instance_id}}/members/{verb}"): MANY
        for verb in ("drain", "undrain", "restart", "remove")
    },
    ("POST", "/v1/operations/claim"): CONTROLLER,
    ("GET", "/v1/operations/{operation_id}"): ANY_SCOPE,
    **{
        ("POST", f"/v1/operations/{{operation_id}}/{verb}"): ANY_SCOPE
        for verb in (
            *("heartbeat", "progress", "complete", "fail", "return-claim"),
            *("retry", "cancel", "release-claim", "abandon"),
        )
    },
    ("GET", "/healthz"): PROBE,
    ("GET", "/readyz"): PROBE,
    ("GET", "/v1/auth/session"): BROWSER,
    ("GET", "/v1/auth/providers"): "the console's sign-in page asks it; `gpuaas login --oidc` names the provider",
    ("POST", "/v1/auth/session"): BROWSER,
    ("GET", "/v1/auth/oidc/callback"): BROWSER,
    ("GET", "/v1/auth/oidc/{provider_id}/start"): BROWSER,
    ("POST", "/v1/auth/oidc/token"): "the end of `gpuaas login --oidc`, after the browser (test_browser.py)",
    ("POST", "/v1/token"): "for service accounts; the SDK asks for it when it signs in",
    ("POST", "/v1/enrol"): AGENT,
    ("POST", "/v1/renew-identity"): AGENT,
    ("GET", "/v1/agent/install.py"): "run on the machine by the line `gpuaas node enrol` prints",
    ("GET", "/v1/agent/{agent_version}"): "got by the machine's installer",
    ("POST", "/v1/nodes/{node_id}/poll"): AGENT,
    ("POST", "/v1/nodes/{node_id}/tasks/{task_id}/renew"): AGENT,
    ("POST", "/v1/nodes/{node_id}/tasks/{task_id}/result"): AGENT,
    ("GET", "/v1/nodes/{node_id}/deliveries/{delivery_id}"): AGENT,
    ("POST", f"{OPERATION}/claim"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/heartbeat"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/progress"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/complete"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/fail"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/return-claim"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/access-grants"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/integration"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/secrets"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/secrets/deliver"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/credentials/redeem"): CONTROLLER,
    ("POST", f"{OPERATION}/{{operation_id}}/tasks"): CONTROLLER,
    ("GET", f"{OPERATION}/{{operation_id}}/tasks/{{task_id}}"): CONTROLLER,
    ("POST", "/v1/projects/{project_id}/instances/{instance_id}/observation"): CONTROLLER,
    ("POST", "/v1/projects/{project_id}/instances/{instance_id}/observation/access-grants"): CONTROLLER,
    ("POST", "/v1/projects/{project_id}/artifacts/resolve"): CONTROLLER,
    ("POST", "/v1/projects/{project_id}/telemetry"): CONTROLLER,
    ("POST", "/v1/projects/{project_id}/otlp/v1/traces"): EXPORTER,
    ("POST", "/v1/projects/{project_id}/otlp/v1/logs"): EXPORTER,
    ("GET", "/v1/tenants/{tenant_id}/events/stream"): "`gpuaas events --follow --tenant T`, which never ends",
    (
        "GET",
        "/v1/projects/{project_id}/events/stream",
    ): "every command that waits, and `events --follow` (test_deploy.py)",
}

MANIFEST = '{"version": "1.0.0"}'
CREDENTIAL = '{"kind": "bearer", "token": "abc"}'
LEVELS = ("tenant", "platform")
# What it takes beside LOOKING: the command, and what it reads from standard input.
MORE: list[tuple[tuple[str, ...], str]] = [
    (("about",), ""),
    (("login", "--email", "ada@example.com", "--password-stdin"), "correct horse\n"),
    (("accept", "--from-stdin"), "inv_1.abc\na long password\n"),
    (("password", "--password-stdin"), "the old one\nthe new one\n"),
    *(((noun, "list"), "") for noun in ("tenant", "project", "user", "context", "delegation")),
    (("tenant", "show"), ""),
    (("tenant", "create", "acme"), ""),
    (("project", "show"), ""),
    (("project", "create", "blue"), ""),
    (("user", "create", "eve@example.com", "--password-stdin"), "correct horse\n"),
    (("user", "disable", "ada@example.com"), ""),
    (("user", "enable", "usr_1"), ""),
    (("app", "list"), ""),
    (("app", "show", "slurm"), ""),
    (("app", "show", "slurm", "--version", "1.0.0"), ""),
    (("app", "create", "slurm"), ""),
    (("app", "add-version", "slurm", "-"), MANIFEST),
    *((("deny-rule", "list", "--level", level), "") for level in LEVELS),
    *((("deny-rule", "create", "apps.instance.create", "--reason", "r", "--level", level), "") for level in LEVELS),
    *((("deny-rule", "remove", "deny_1", "--level", level), "") for level in LEVELS),
    (("iam", "bindings"), ""),
    (("iam", "invitations"), ""),
    (("iam", "revoke-invitation", "inv_1"), ""),
    (("iam", "create-role", "night-shift", "apps.instance.read"), ""),
    (("iam", "delete-role", "night-shift"), ""),
    (("iam", "explain", "tenancy.user.create", "--who", "usr_1", "--tenant", "acme"), ""),
    (("service-account", "create", "robot", "--identity", "{tmp}/robot.json"), ""),
    (("service-account", "rotate", "robot", "--identity", "{tmp}/robot.json"), ""),
    (("identity-provider", "show", "Acme"), ""),
    (("member", "show", "train", "mem_1"), ""),
    (("ssh", "train", "mem_1"), ""),
    (("allocation", "show", "big"), ""),
    (("allocation", "create", "node-a"), ""),
    (("allocation", "release", "big"), ""),
    (("node", "enrol", "gpu-box-1"), ""),
    (("node", "readmit", "node-a", "--reason", "r"), ""),
    (("credential", "import", "storage"), "a private key"),
    (("delegation", "create", "sa_1", "apps.instance.read", "--reason", "r"), ""),
    (("delegation", "revoke", "dlg_1"), ""),
    (("break-glass", "open", "ten_1", "--reason", "r", "--ticket", "t"), ""),
    (("break-glass", "approve", "brk_1"), ""),
    (("break-glass", "close", "brk_1"), ""),
    (("break-glass", "list"), ""),
    (("break-glass", "list", "--tenant", "acme"), ""),
    *((("artifact", "list", "--level", level), "") for level in LEVELS),
    *((("artifact", "show", "art_1", "--level", level), "") for level in LEVELS),
    (("artifact", "withdraw", "art_1", "--level", "platform"), ""),
    (("artifact-source", "list", "--level", "platform"), ""),
    *((("artifact-source", "show", "asrc_1", "--level", level), "") for level in LEVELS),
    (("artifact-source", "add", "m", "https://m.example", "--kind", "blob", "--level", "platform"), ""),
    (("artifact-source", "enable", "asrc_1", "--level", "platform"), ""),
    (("artifact-source", "remove", "asrc_1", "--level", "platform"), ""),
    *((("artifact-source", "set-credential", "asrc_1", "--level", level), CREDENTIAL) for level in LEVELS),
    *((("policy", "list", "--level", level), "") for level in ("project", "platform")),
    *((("policy", "set", "eu", "--only", "regions=eu", "--level", level), "") for level in LEVELS),
    *((("policy", "remove", "eu", "--level", level), "") for level in ("project", "tenant")),
    (("events",), ""),
    (("events", "--tenant", "acme"), ""),
    (("triage", "cor-of-op"), ""),
    (("explain",), ""),
    (("completion", "bash"), ""),
    (("context", "use", "{host}"), ""),
    (("context", "remove", "{host}"), ""),
]


def routes() -> set[Route]:
    return {(method.upper(), path) for path, known in CONTRACT["paths"].items() for method in known}


def route_of(call: Call | Request[Any]) -> Route:
    """Literal paths win over those with a placeholder."""
    for method, path in sorted(routes(), key=lambda route: route[1].count("{")):
        if method == call.method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), call.path):
            return method, path
    raise AssertionError(f"{call.method} {call.path} is not in the contract")


def answer_everything(platform: Platform) -> None:
    """What the scene does not know is answered as plainly as the contract allows."""
    for path, known in CONTRACT["paths"].items():
        for method, operation in known.items():
            pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "$")
            answer = _plain_answer(operation)
            platform.handlers.append((method.upper(), pattern, lambda _, answer=answer: answer))


def _plain_answer(operation: dict[str, Any]) -> tuple[int, Any]:
    good_ones = [(int(status), response) for status, response in operation["responses"].items() if status < "300"]
    status, good = next(iter(good_ones), (204, {}))
    schema = next(iter(good.get("content", {}).values()), {}).get("schema", {})
    name = generate.class_name(schema.get("$ref", "").rsplit("/", 1)[-1])
    if name.startswith("Page_"):
        return status, {"items": [], "next_cursor": None, "event_sequence": 0}
    model = getattr(models, name, None)
    return status, _moments(wire(model)) if model else None


def _moments(answer: dict[str, Any]) -> dict[str, Any]:
    """Times are times, or commands cannot say how long ago they were."""
    return {
        name: "2020-01-01T00:00:00Z" if name.endswith("_at") and value == "" else value
        for name, value in answer.items()
    }


def walk(folder: Path) -> Iterator[tuple[tuple[str, ...], int, list[Call]]]:
    """Every command once: its words, its exit code and what it sent."""
    platform = Platform()
    host = platform.url.split("://")[1]
    env = {"GPUAAS_CONFIG": str(folder / "config.json"), "GPUAAS_API": platform.url, "GPUAAS_TOKEN": "tok"}
    env["PATH"] = f"{without_a_machine(folder)}:{os.environ['PATH']}"
    try:
        Scene(platform)
        answer_everything(platform)
        for words, typed in [
            *((words, "") for words in LOOKING),
            *((confirmed(words), typed) for words, typed in MORE),
        ]:
            before = len(platform.calls)
            filled = [word.replace("{tmp}", str(folder)).replace("{host}", host) for word in words]
            with mock.patch.dict(os.environ, env), mock.patch.object(sys, "stdin", io.StringIO(typed)):
                code = _silently(filled)
            yield words, code, platform.calls[before:]
    finally:
        platform.close()


def without_a_machine(folder: Path) -> Path:
    """An ssh that gets in nowhere and says that all is well."""
    ssh = folder / "bin" / "ssh"
    ssh.parent.mkdir(exist_ok=True)
    ssh.write_text("#!/bin/sh\nexit 0\n")
    ssh.chmod(0o755)
    return ssh.parent


def _silently(words: list[str]) -> int:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    assert code == 0, f"gpuaas {' '.join(words)} ended with {code}: {errors.getvalue()}"
    return code
