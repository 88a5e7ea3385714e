"""Commands that look: what they print for people, what they print for scripts."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from gpuaas_cli.destructive import CONSEQUENCES

from cli.tests.support.cli_stack import Gpuaas, Scene
from sdk.tests.support.fake_platform import problem


def confirmed(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command as a script runs it: without a terminal, a destructive command needs --yes."""
    asks = " ".join(words[:2]) in CONSEQUENCES and "--plan" not in words
    return (*words, "--yes") if asks else words


COMMANDS = [
    ("whoami",),
    ("catalog",),
    ("entitlement", "list"),
    ("entitlement", "enable", "slurm", "--only", "regions=eu-west", "--days", "9"),
    ("entitlement", "disable", "slurm"),
    ("policy", "show"),
    ("policy", "explain", "regions", "eu-north"),
    ("policy", "list", "--level", "tenant"),
    ("policy", "set", "eu", "--only", "regions=eu-west"),
    ("policy", "remove", "eu", "--level", "platform"),
    ("app", "versions", "slurm"),
    ("app", "publish", "slurm", "1.0.0"),
    ("app", "deprecate", "slurm", "1.0.0", "--reason", "old"),
    ("app", "withdraw", "slurm", "1.0.0"),
    ("allocation", "list"),
    ("allocation", "list", "--tenant", "acme"),
    ("identity-provider", "list"),
    ("identity-provider", "create", "Acme", "--issuer", "https://a.example", "--client-id", "us"),
    ("identity-provider", "update", "Acme", "--domain", "acme.example"),
    ("identity-provider", "delete", "Acme"),
    ("node", "list"),
    ("node", "show", "node-a"),
    *(("node", verb, "node-a", "--reason", "fan is loud") for verb in ("cordon", "uncordon", "drain", "retire")),
    ("node", "pool", "node-a", "night-shift"),
    ("pool", "list"),
    ("pool", "create", "night-shift", "--title", "Night"),
    ("region", "list"),
    ("region", "create", "eu-west", "--title", "Europe, west"),
    ("sku", "list"),
    (
        *("sku", "create", "h100-8x", "--gpu-model", "H100", "--gpu-count", "8", "--cpus", "96"),
        *("--memory-mb", "1000000", "--price-micros-per-hour", "23500000", "--currency", "EUR"),
    ),
    ("node", "wipe", "node-a", "--reason", "there is space again"),
    ("node", "wipe", "node-a", "--by-hand", "--reason", "reinstalled"),
    ("node", "upgrade", "node-a"),
    ("task", "list", "node-a"),
    ("task", "show", "node_1", "task_1"),
    ("pool", "delete", "night-shift"),
    ("sku", "delete", "h100-8x"),
    ("region", "delete", "eu-west"),
    ("quota", "show"),
    ("quota", "set", "--max-allocations", "10"),
    ("allocation", "request", "--sku", "h100-8x", "--count", "1", "--lost-after-s", "60"),
    ("allocation", "extend", "alloc_1", "--expires-in-s", "600"),
    ("instance", "list"),
    ("instance", "show", "train"),
    ("operation", "list"),
    ("operation", "show", "op_1"),
    ("operation", "show", "train"),
    ("operation", "certificate", "op_1"),
    ("operation", "cancel", "op_1"),
    ("access", "train"),
    ("instance", "watch", "train"),
    ("instance", "deploy", "slurm", "--name", "train", "--place", "controller=node-a", "--plan"),
    ("instance", "deploy", "slurm", "--name", "train", "--place", "controller=node-a", "--no-wait"),
    ("instance", "decommission", "train", "--no-wait"),
    ("operation", "retry", "train", "--no-wait"),
    ("operation", "release-claim", "op_1"),
    ("operation", "cancel-batch", "batch_1"),
    ("operation", "abandon", "op_1", "--reason", "the rack is gone"),
    *(("instance", verb, "train", "--no-wait") for verb in ("stop", "start", "restart", "rotate-keys", "rollback")),
    ("instance", "update", "train", "--input", "a=1", "--no-wait"),
    ("instance", "update", "train", "--input", "a=1", "--without", "b", "--plan"),
    ("instance", "upgrade", "train", "1.1.0", "--no-wait"),
    ("instance", "decommission", "train", "--plan"),
    ("member", "list", "train"),
    ("member", "add", "train", "worker", "node-a", "--no-wait"),
    ("member", "add", "train", "worker", "node-a", "--plan"),
    *(("member", verb, "train", "controller/0", "--no-wait") for verb in ("drain", "undrain", "restart", "retry")),
    ("member", "remove", "train", "mem_1", "--no-wait"),
    ("member", "remove", "train", "mem_1", "--plan"),
    ("member", "remove", "train", "mem_1", "--host-is-gone", "--reason", "it burned", "--no-wait"),
    ("member", "replace", "train", "mem_1", "node-a", "--no-wait"),
    ("member", "replace", "train", "mem_1", "node-a", "--host-is-gone", "--reason", "it burned", "--no-wait"),
    ("member", "tombstone", "train", "mem_1", "--reason", "it burned"),
    ("orphan", "list"),
    ("secret", "list", "train"),
    ("secret", "issue", "train", "db_password"),
    ("secret", "delete", "train", "db_password"),
    ("artifact", "list"),
    ("artifact", "show", "packages:1.0"),
    ("artifact", "show", "art_1"),
    ("artifact", "push", __file__, "--name", "packages", "--version", "1.0"),
    ("artifact", "push", __file__, "--name", "packages", "--version", "1.0", "--level", "platform"),
    ("artifact", "register", "--name", "weights", "--version", "7", "--from-source", "models", "--path", "a.bin"),
    ("artifact", "withdraw", "packages:1.0", "--reason", "broken"),
    ("artifact-source", "list"),
    ("artifact-source", "add", "models", "https://models.example", "--kind", "blob"),
    *(("artifact-source", verb, "models", "--reason", "incident") for verb in ("disable", "enable", "remove")),
    ("artifact-source", "disable", "asrc_1", "--level", "platform"),
    ("credential", "list", "--revoked"),
    ("credential", "show", "storage"),
    ("credential", "create", "storage"),
    ("credential", "rotate", "storage", "--overlap-s", "60"),
    ("credential", "complete-rotation", "storage"),
    ("credential", "revoke", "storage", "--reason", "stolen"),
    ("credential", "bind", "storage", "train"),
    ("credential", "unbind", "cred_1", "train"),
    ("grant", "list", "--revoked"),
    ("grant", "revoke", "grant_1", "--reason", "stolen"),
    ("ssh-authority", "list"),
    ("ssh-authority", "rotate", "user"),
    ("ssh-authority", "finish", "host", "--force"),
    ("orphan", "resolve", "orph_1", "--reason", "wiped"),
    ("audit", "list"),
    ("audit", "verify"),
    ("iam", "explain", "apps.instance.create"),
    ("iam", "explain", "apps.instance.create", "--who", "ada@example.com"),
    ("iam", "permissions"),
    ("iam", "members"),
    ("iam", "roles"),
    ("iam", "bind", "ada@example.com", "project_viewer"),
    ("iam", "unbind", "bind_1"),
    ("iam", "invite", "eve@example.com", "--role", "project_member", "--project", "red"),
    ("session", "list"),
    ("session", "revoke", "ses_1"),
    ("service-account", "list"),
    ("service-account", "keys", "robot"),
    ("service-account", "retire-key", "robot", "key_1"),
    ("service-account", "disable", "robot"),
    ("service-account", "enable", "robot"),
    ("service-account", "delete", "robot"),
    ("logout",),
]
LOOKING = [confirmed(words) for words in COMMANDS]


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_json_is_valid_and_alone_on_stdout(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert gpuaas(*command, "-o", "json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) is not None
    assert printed.err == ""


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_people_get_words(gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    assert gpuaas(*command) == 0
    assert capsys.readouterr().out.strip()


TABLES = {
    ("instance", "list"): """\
NAME   APP          STATE    HEALTH   DETAIL             CREATED  ID
train  slurm 1.0.0  running  healthy  One node is idle.  3 d ago  inst_1
""",
    ("allocation", "list"): """\
NAME  NODE    STATE   GPUS      SIZE           USED BY  ID
big   node-a  active  2 × A100  8 CPUs, 32 GB  -        alloc_1
""",
    ("allocation", "list", "--tenant", "acme"): """\
NAME  PROJECT  NODE    STATE   REGION  SKU  GPUS  USED BY  ID
big   prj_1    node-a  active  eu      a2   2     -        alloc_1
""",
    ("identity-provider", "list"): """\
NAME  ISSUER             DOMAINS       DEFAULT ROLE  ID
Acme  https://a.example  acme.example  -             idp_1
""",
    ("catalog",): """\
APP    VERSION  STATE            DESCRIPTION
slurm  1.0.0    ready to deploy  A batch scheduler.
""",
    ("policy", "show"): """\
FIELD    ALLOWED     DENIED
regions  eu-west     eu-north
skus     everything  -

NOT ALLOWED  DECIDED BY  REASON
eu-north     project     the region 'eu-north' is denied by the project policy 'eu': the data stays here
""",
    ("policy", "set", "eu", "--only", "regions=eu-west"): """\
Changed the project policy eu: regions only eu-west; regions deny eu-north. Running instances are not affected.
""",
    ("whoami",): """\
You are Ada <ada@example.com>.

PROJECT  NAME      TENANT  YOUR ROLES     ID
red      Red team  Acme    project_admin  prj_1
""",
    ("access", "train"): """\
How to use train. One node is idle.

login
  host  10.0.0.9

commands
  sinfo
  srun hostname
""",
    ("instance", "deploy", "slurm", "--name", "train", "--place", "controller=node-a", "--plan"): """\
Deploy slurm 1.0.0 as 'train' on 1 machine.

NODE    ADDRESS   COMPONENTS
node-a  10.0.0.9  controller, worker

Charged to project red. Nothing was changed. Run it without --plan to apply.
""",
    ("instance", "update", "train", "--input", "a=1", "--plan"): """\
Deploy slurm 1.0.0 as 'train' on 1 machine.

INPUT  CURRENT  NEW  EFFECT  DETAIL
/a     -        1    pushed  Applied while jobs run.

NODE    ADDRESS   COMPONENTS
node-a  10.0.0.9  controller, worker

Charged to project red. Nothing was changed. Run it without --plan to apply.
""",
    ("operation", "cancel", "op_1"): """\
Asked the deploy to stop. It is succeeded until then.

Next:
  gpuaas operation show op_1   its current status
""",
}


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize(
    ("command", "expected"), TABLES.items(), ids=lambda v: " ".join(v) if isinstance(v, tuple) else ""
)
def test_what_people_see(
    gpuaas: Gpuaas,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.setattr("gpuaas_cli.show.ago", lambda *_: "3 d ago")
    assert gpuaas(*command) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.usefixtures("scene")
def test_columns_are_not_cut_off_in_a_pipe(gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene) -> None:
    scene.instance["health"]["sentence"] = "The sentence is long. " * 8
    gpuaas("instance", "list")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("command", "route", "words"),
    [
        (("instance", "list"), "/v1/projects/prj_1/instances", "gpuaas catalog"),
        (("allocation", "list"), "/v1/projects/prj_1/allocations", "tenant administrator"),
        (("catalog",), "/v1/projects/prj_1/catalog", "empty"),
        (("operation", "list"), "/v1/projects/prj_1/operations", "No operations"),
        (("pool", "list"), "/v1/tenants/ten_1/pools", "No pools"),
        (("iam", "invitations"), "/v1/tenants/ten_1/invitations", "No invitations"),
    ],
)
def test_an_empty_list_says_what_to_do(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, command: tuple[str, ...], route: str, words: str
) -> None:
    scene.platform.on("GET", route, lambda _: (200, {"items": [], "next_cursor": None}))
    assert gpuaas(*command) == 0
    assert words in capsys.readouterr().out


def test_text_of_several_lines_in_an_access_bundle_can_be_copied(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    header = "#SBATCH --account=red\n#SBATCH --time=60\n"
    scene.instance["access"] = {"headers": [{"partition": "main", "text": header, "proof": "exit 0"}]}
    assert gpuaas("access", "train") == 0
    printed = capsys.readouterr().out
    assert "\n#SBATCH --account=red\n#SBATCH --time=60\n" in printed, "sbatch passes over a header that is indented"
    assert "\n  partition  main\n  proof      exit 0\n" in printed


def test_an_app_may_say_anything_in_its_words_without_breaking_the_table(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.instance["health"]["sentence"] = "[red]not markup[/] :smile: [/bold]"
    assert gpuaas("instance", "list") == 0
    assert "[red]not markup[/] :smile: [/bold]" in capsys.readouterr().out


@pytest.mark.parametrize("command", [("instance", "list"), ("instance", "show", "train")], ids=" ".join)
def test_a_terminal_gets_colours_and_the_same_words(
    gpuaas: Gpuaas, scene: Scene, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    scene.instance["health"]["sentence"] = "[red]not markup[/] is what it is."
    terminal = type("Terminal", (io.StringIO,), {"isatty": lambda self: True})()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    assert gpuaas(*command) == 0
    assert "[red]not markup[/] is what it is." in terminal.getvalue()
    assert "\x1b[32mhealthy" in terminal.getvalue()


@pytest.mark.parametrize("width", [80, 40, 24])
def test_a_narrow_terminal_still_shows_every_word(
    gpuaas: Gpuaas, scene: Scene, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    scene.instance |= {
        "id": "inst_01m7jfkjcbghq7trjfvh25mgxh",
        "health": {"status": "healthy", "sentence": "Both idle."},
    }
    terminal = type("Terminal", (io.StringIO,), {"isatty": lambda self: True})()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(width))
    assert gpuaas("instance", "list") == 0
    page = re.sub("\x1b\\[[0-9;]*m", "", terminal.getvalue())
    assert {"train", "slurm", "1.0.0", "running", "healthy", "idle."} <= set(page.split()), page
    assert all(len(line) <= width for line in page.splitlines()), page


def test_a_failed_operation_shows_what_its_host_said(
    scene: Scene, gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {"code": "step_failed", "message": "x", "way_out": "y", "retryable": True}
    detail = {
        "step": "join",
        "host": "gpu3",
        "log": ["slurmd: fatal: my last words"],
        "units": [
            {"unit": "slurmd.service", "active": "failed", "sub": "failed", "result": "exit-code"},
            {"unit": "munge.service", "active": "active", "sub": "running", "result": "success"},
        ],
        "checks": [
            {"check": "disk_free", "ok": False, "sentence": "There is no room."},
            {"check": "ports", "ok": True},
        ],
    }
    scene.operation = scene.make_operation(status="failed", error=error, adapter_detail=detail)
    assert gpuaas("operation", "show", "train") == 0
    printed = capsys.readouterr().out
    for words in ("join", "gpu3", "my last words", "slurmd.service is failed", "There is no room."):
        assert words in printed
    assert "munge" not in printed


def test_the_latest_operation_can_be_asked_for_by_instance_name(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    error = {"code": "disk_full", "message": "node-a is full.", "way_out": "Free 2 GB.", "retryable": True}
    scene.operation = scene.make_operation(status="failed", error=error)
    assert gpuaas("operation", "show", "train") == 0
    printed = capsys.readouterr().out
    for words in ("failed", "node-a is full.", "Free 2 GB.", "disk_full", "cor-of-op"):
        assert words in printed


def test_a_tenants_administrator_sees_their_own_tenant_in_the_list(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.platform.on("GET", "/v1/tenants", lambda _call: problem(403, "permission_denied"))
    assert gpuaas("tenant", "list") == 0
    assert "acme" in capsys.readouterr().out


def test_a_suggested_command_goes_where_this_one_went(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("instance", "stop", "train", "--no-wait")
    assert gpuaas(*words, "--project", "red") == 0
    assert "gpuaas instance watch train --project red " in capsys.readouterr().out
    assert gpuaas(*words) == 0
    assert "gpuaas instance watch train  " in capsys.readouterr().out
    assert gpuaas("instance", "show", "trian", "-p", "red") == 5
    assert "gpuaas instance list --project red" in capsys.readouterr().err


def test_a_question_without_a_terminal_is_no_bug(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_question: str) -> str:
        raise EOFError

    monkeypatch.setattr("getpass.getpass", closed)
    assert gpuaas("password") == 2
    assert "standard input is closed" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("session", "revoke"), ("triage",), ("node", "show"), ("operation", "show")])
def test_an_empty_name_is_no_bug(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert gpuaas(*confirmed((*command, ""))) in (2, 5)
    assert "empty" in capsys.readouterr().err


def test_a_policy_is_changed_only_in_the_state_that_was_seen(gpuaas: Gpuaas, scene: Scene) -> None:
    rules = ("--only", "regions=eu-west,eu-north", "--deny", "skus=a100", "--only", "apps=")
    assert gpuaas("policy", "set", "eu", *rules, "--reason", "law") == 0
    sent = scene.platform.calls[-1]
    assert (sent.method, sent.headers["if-match"]) == ("PUT", '"pol_1.3"')
    rules_sent = {"regions": {"only": ["eu-west", "eu-north"]}, "skus": {"deny": ["a100"]}, "apps": {"only": []}}
    assert sent.body == {"rules": rules_sent, "reason": "law"}
    assert gpuaas("policy", "set", "new", "--level", "platform", "--enable-managed", "slurm") == 0
    sent = scene.platform.calls[-1]
    assert (sent.path, sent.headers["if-none-match"]) == ("/v1/policies/new", "*")
    assert sent.body == {"rules": {}, "enables": {"platform_managed": ["slurm"]}}


def test_a_private_key_comes_from_a_file_only_its_owner_can_read_or_from_standard_input(
    gpuaas: Gpuaas,
    scene: Scene,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    file = tmp_path / "key"
    file.write_text("a private key")
    file.chmod(0o640)
    assert gpuaas("credential", "import", "storage", str(file)) == 2
    assert "Other accounts can read" in capsys.readouterr().err
    assert gpuaas("credential", "rotate", "storage", "--file", str(file)) == 2
    assert gpuaas("credential", "import", "storage", str(tmp_path / "missing")) == 2
    assert not [one for one in scene.platform.calls if one.method == "POST"]
    file.chmod(0o600)
    capsys.readouterr()
    assert gpuaas("credential", "import", "storage", str(file)) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("another"))
    assert gpuaas("credential", "import", "storage") == 0
    sent = [one.body["private_key"] for one in scene.platform.calls if one.path.endswith("/import")]
    assert sent == ["a private key", "another"]
    assert "private" not in capsys.readouterr().out
