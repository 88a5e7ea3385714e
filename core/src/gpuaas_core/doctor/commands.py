"""The commands `gpuaas-core doctor` and `gpuaas-core audit`, for the platform's operator on the platform's own host."""

import base64
import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Literal, NoReturn, TypeVar

from cyclopts import App, Parameter

from ..audit.audit_log import begin_again
from ..audit.checkpoints import PURPOSE, Checkpoints
from ..audit.verify import Read, Verdict, streams, verify
from ..custody.key_providers import open_holder
from ..custody.key_providers.embedded import FILE, INLINE
from ..custody.vault import read_vault
from ..kit.clock import system_clock
from ..kit.db import Database
from ..settings import Settings
from .examine import examine
from .findings import Finding, Patient
from .store import NotReadable, reading

T = TypeVar("T")
MOST_SHOWN = 10  # violations of one invariant
Output = Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])]
audit = App(name="audit", help="Verify the audit trail, and show the public key of its checkpoints.")


def doctor(*, output: Output = "text") -> None:
    """Check the platform's invariants in the database without changing anything. Exits with 1 if one is violated.

    Example: `gpuaas-core doctor`
    """
    settings = Settings.read()

    def check_all(read: Read) -> list[Finding]:
        return examine(Patient(read, _checkpoints(settings, read), system_clock()))

    findings = _read(settings, check_all)
    _print_json([_finding(finding) for finding in findings]) if output == "json" else _print_findings(findings)
    raise SystemExit(1 if any(finding.violations for finding in findings) else 0)


@audit.command(name="verify")
def verify_audit(*, tenant: str | None = None, public_key: str | None = None, output: Output = "text") -> None:
    """Verify the audit trail against its checkpoints, using only the database and files. Exits with 1 if it is broken.

    Example: `gpuaas-core audit verify --tenant platform`

    Parameters
    ----------
    tenant
        Id of one tenant, or `platform`; all if omitted.
    public_key
        Output of `gpuaas-core audit key`, to verify on a host without the master key.
    """
    settings = Settings.read()

    def check(read: Read) -> list[Verdict]:
        checkpoints = _checkpoints(settings, read, public_key)
        return [verify(read, checkpoints, stream) for stream in ([tenant] if tenant else streams(read, checkpoints))]

    verdicts = _read(settings, check)
    _print_json([_verdict(verdict) for verdict in verdicts]) if output == "json" else _print_verdicts(verdicts)
    raise SystemExit(0 if all(verdict.ok for verdict in verdicts) else 1)


@audit.command
def restart(tenant: str, *, reason: str) -> None:
    """Start new checkpoints for a tenant after a backup was restored on purpose. The old checkpoint file is kept.

    This does not repair a broken chain. The reason is recorded in the tenant's audit trail.

    Example: `gpuaas-core audit restart ten_… --reason "restored the backup of Sunday"`

    Parameters
    ----------
    tenant
        Id of the tenant, or `platform`.
    reason
        Why; visible to all readers of the trail.
    """
    settings = Settings.read()
    checkpoints = _read(settings, lambda read: _checkpoints(settings, read))
    if tenant not in _read(settings, lambda read: streams(read, checkpoints)):
        _stop(f"No audit trail {tenant}. Give a tenant id, or `platform`.")
    db = Database(settings.database_url)
    aside = checkpoints.set_aside(tenant, system_clock())
    db.write_now(lambda tx: begin_again(tx, tenant, reason, system_clock()))
    db.close()
    print(f"New checkpoints begin within five minutes. The old ones: {aside or 'none'}.")


@audit.command
def key() -> None:
    """Print the public key that verifies the checkpoints. Store the key where the platform cannot change it."""
    settings = Settings.read()
    print(base64.b64encode(_read(settings, lambda read: _key(settings, read))).decode())


def _checkpoints(settings: Settings, read: Read, public_key: str | None = None) -> Checkpoints:
    return Checkpoints(settings.checkpoints, _decode(public_key) if public_key else _key(settings, read))


def _key(settings: Settings, read: Read) -> bytes:
    """Return the public key that verifies the checkpoints. Stops the command if there is no master key: a key created
    here could not verify any checkpoint."""
    path = settings.data_dir / "master.key"
    if settings.custody == "embedded" and not (path.exists() or INLINE in os.environ or FILE in os.environ):
        _stop(f"No master key at {path}. Set GPUAAS_CORE_DATA, or pass --public-key.")
    holder = open_holder(settings.custody, os.environ, settings.data_dir)
    return read(lambda tx: read_vault(tx, holder)).public_key(PURPOSE)


def _decode(given: str) -> bytes:
    with contextlib.suppress(ValueError):
        key = base64.b64decode(given, validate=True)
        if len(key) == 32:
            return key
    _stop("Invalid public key. Pass the line that `gpuaas-core audit key` prints.")


def _read(settings: Settings, fn: Callable[[Read], T]) -> T:
    try:
        with reading(settings.database_url) as read:
            return fn(read)
    except NotReadable as error:
        _stop(str(error))


def _stop(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    raise SystemExit(2)


def _finding(finding: Finding) -> dict[str, object]:
    summary = {"number": finding.invariant.number, "title": finding.invariant.title, "status": finding.status}
    shown = [asdict(violation) for violation in finding.violations[:MOST_SHOWN]]
    return {**summary, "why_not": finding.invariant.not_yet, "count": len(finding.violations), "violations": shown}


def _verdict(verdict: Verdict) -> dict[str, object]:
    facts: dict[str, object] = asdict(verdict)
    return {**facts, "ok": verdict.ok, "sentence": verdict.sentence}


def _print_findings(findings: list[Finding]) -> None:
    for finding in findings:
        why = f" ({finding.invariant.not_yet})" if finding.invariant.not_yet else ""
        print(f"{finding.invariant.number:>3}  {finding.status:<18}  {finding.invariant.title}{why}")
        if len(finding.violations) > MOST_SHOWN:
            print(f"     {len(finding.violations)} violations; the first {MOST_SHOWN}:")
        for violation in finding.violations[:MOST_SHOWN]:
            print(f"     - {violation.sentence}\n       rows: {', '.join(violation.rows)}\n       {violation.way_out}")
    broken = sum(bool(finding.violations) for finding in findings)
    print(f"\n{broken} of {len(findings)} invariants are violated." if broken else "\nAll invariants hold.")


def _print_verdicts(verdicts: list[Verdict]) -> None:
    for verdict in verdicts:
        print(f"{'ok    ' if verdict.ok else 'BROKEN'}  {verdict.tenant_id}: {verdict.sentence}")
        if verdict.broken:
            print(f"        first break at row {verdict.broken.sequence}. {verdict.broken.way_out}")
    if not verdicts:
        print("There are no audit rows yet.")


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))
