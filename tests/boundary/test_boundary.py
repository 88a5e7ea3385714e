"""The boundary, checked on the source itself: the core knows no app, and an app knows no core."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tracked(*folders: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def lines_with(pattern: str, files: list[Path]) -> list[str]:
    found = []
    for path in files:
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if re.search(pattern, line, re.IGNORECASE):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    return found


def test_the_core_says_slurm_only_where_the_seeds_put_it_in_the_contract() -> None:
    """`git grep -i slurm core/` shows one line: the runtime backends a manifest may name."""
    (found,) = lines_with("slurm", tracked("core"))
    assert found.startswith("core/src/gpuaas_core/catalog/manifest.schema.json:")
    assert '"runtime_backend": {"enum": ["k8s", "slurm", "ray", "bare_metal"]}' in found


WORDS = ["munge", "sbatch", "srun", "sacct", "squeue", "sinfo", r"\bgres\b", r"\bqos\b", "kubelet", "raylet"]
WORDS += [r"(?<!r)partition(?!\(|_by=)", "apt-get|dnf install|systemctl"]  # a method, a clause of SQL


@pytest.mark.parametrize("word", WORDS)
def test_the_core_uses_no_word_of_a_scheduler_it_does_not_know(word: str) -> None:
    assert not lines_with(word, tracked("core/src"))


@pytest.mark.parametrize("word", ["slurm", "mariadb", "scontrol", *WORDS[:-1]])
def test_the_step_engine_knows_no_app(word: str) -> None:
    assert not lines_with(word, tracked("sdk/src/gpuaas_sdk/host_steps"))


def test_the_slurm_app_calls_slurm_through_one_door() -> None:
    """Every call of a Slurm client is written in slurm/; commands for people come from slurm/hints.py."""
    clients, door = r"\b(scontrol|sinfo|sacctmgr|squeue|sacct)\b", "apps/slurm/src/gpuaas_slurm/slurm/"
    found = lines_with(clients, [path for path in tracked("apps/slurm/src") if path.suffix == ".py"])
    assert [line for line in found if not line.startswith(door)] == []
    assert len(found) > 20, "the search can find something"


def test_the_agent_imports_only_the_standard_library_and_cryptography() -> None:
    """It runs as root on every host, so each library it needs is one more to trust and to update there."""
    allowed = {*sys.stdlib_module_names, "cryptography", "gpuaas_agent"}
    seen: dict[str, set[str]] = {}
    for path in (path for path in tracked("agent/src") if path.suffix == ".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                seen.setdefault(name.partition(".")[0], set()).add(path.name)
    assert {name: files for name, files in seen.items() if name not in allowed} == {}
    assert "cryptography" in seen, "the search can find something"


def test_the_search_for_words_can_find_something() -> None:
    assert len(lines_with("lifecycle", tracked("core/src"))) > 3


def test_no_tracked_file_names_a_registry_or_a_path_of_this_machine() -> None:
    files = [path for path in tracked(".") if path.suffix not in (".svg", ".png")]
    hosts = r"(--(extra-)?index-url|https?://[^ \"]+/simple([ \"/]|$)|https?://[^ \"]+/debian([ \"/]|$)|\"resolved\": *\"http)"
    here = [line for line in lines_with(hosts, files) if not line.startswith("tests/boundary/test_boundary.py")]
    assert not here
    assert not [line for line in lines_with(r"/w[o]rk/(main|steering|shared)", files)]


def test_every_file_stays_small_enough_to_be_one_noun() -> None:
    generated = ("sdk/src/gpuaas_sdk/client/models.py", "core/src/gpuaas_core/migrations/versions/")
    files = [p for p in tracked(".") if p.suffix == ".py" and not str(p.relative_to(ROOT)).startswith(generated)]
    long = {str(p.relative_to(ROOT)): n for p in files if (n := len(p.read_text().splitlines())) > 500}
    assert not long
