"""`gpuaas-core doctor` and `gpuaas-core audit`: for the platform's operator, on the platform's own machine."""

import base64
import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from cyclopts import App, Parameter

from ..custody.holders import open_holder
from ..custody.holders.embedded import FILE, INLINE
from ..custody.vault import read_vault
from ..history.checkpoints import PURPOSE, Checkpoints
from ..history.verify import Verdict, streams, verify
from ..kit.clock import system_clock
from ..kit.db import Database
from ..ledger.audit import begin_again
from ..settings import Settings
from .examine import examine
from .findings import Finding, Patient
from .store import NotLookedAt, reading

T = TypeVar("T")
Output = Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])]
audit = App(name="audit", help="The audit trail: check it, and say which key its checkpoints carry.")


def doctor(*, output: Output = "text") -> None:
    """Check the platform's invariants in the store, changing nothing. Ends with 1 if one is violated.

    Example: `gpuaas-core doctor`
    """
    settings = Settings.read()

    def look(read: Any) -> list[Finding]:
        return examine(Patient(read, _checkpoints(settings, read), system_clock()))

    found = _look(settings, look)
    _print_json([_finding(one) for one in found]) if output == "json" else _print_findings(found)
    raise SystemExit(1 if any(one.violations for one in found) else 0)


@audit.command(name="verify")
def verify_audit(*, tenant: str | None = None, public_key: str | None = None, output: Output = "text") -> None:
    """Check the audit chains against their checkpoints, from the store and the files alone. Ends with 1 if broken.

    Example: `gpuaas-core audit verify --tenant platform`

    Parameters
    ----------
    tenant
        Id of one tenant, or `platform`; all if left out.
    public_key
        What `gpuaas-core audit key` printed: for a check where the master key is not.
    """
    settings = Settings.read()

    def check(read: Any) -> list[Verdict]:
        checkpoints = _checkpoints(settings, read, public_key)
        return [verify(read, checkpoints, one) for one in ([tenant] if tenant else streams(read, checkpoints))]

    found = _look(settings, check)
    _print_json([_verdict(one) for one in found]) if output == "json" else _print_verdicts(found)
    raise SystemExit(0 if all(one.ok for one in found) else 1)


@audit.command
def restart(tenant: str, *, reason: str) -> None:
    """Begin new checkpoints for a tenant after a backup was restored on purpose; the old file is kept aside.

    It cannot make a broken chain whole, and it leaves a row with the reason in the tenant's trail.

    Example: `gpuaas-core audit restart ten_… --reason "restored the backup of Sunday"`

    Parameters
    ----------
    tenant
        Id of the tenant, or `platform`.
    reason
        Why; everybody who reads the trail will see it.
    """
    settings = Settings.read()
    checkpoints = _look(settings, lambda read: _checkpoints(settings, read))
    if tenant not in _look(settings, lambda read: streams(read, checkpoints)):
        _stop(f"There is no trail of {tenant}. Trails are named by tenant id, or `platform`.")
    db = Database(settings.database_url)
    aside = checkpoints.set_aside(tenant, system_clock())
    db.write_now(lambda tx: begin_again(tx, tenant, reason, system_clock()))
    db.close()
    print(f"New checkpoints begin within five minutes. The old ones: {aside or 'there were none'}.")


@audit.command
def key() -> None:
    """The public key of the checkpoints, to be kept where the platform cannot change it."""
    settings = Settings.read()
    print(base64.b64encode(_look(settings, lambda read: _key(settings, read))).decode())


def _checkpoints(settings: Settings, read: Any, public_key: str | None = None) -> Checkpoints:
    return Checkpoints(settings.checkpoints, _decoded(public_key) if public_key else _key(settings, read))


def _key(settings: Settings, read: Any) -> bytes:
    """Never makes a new master key: a check with a fresh key would suspect everything."""
    path = settings.data_dir / "master.key"
    if settings.custody == "embedded" and not (path.exists() or INLINE in os.environ or FILE in os.environ):
        _stop(f"There is no master key at {path}. Set GPUAAS_CORE_DATA, or give --public-key.")
    holder = open_holder(settings.custody, os.environ, settings.data_dir)
    return read(lambda tx: read_vault(tx, holder)).public_key(PURPOSE)


def _decoded(given: str) -> bytes:
    with contextlib.suppress(ValueError):
        key = base64.b64decode(given, validate=True)
        if len(key) == 32:
            return key
    _stop("This is not a public key. Give the line that `gpuaas-core audit key` prints.")


def _look(settings: Settings, fn: Callable[[Any], T]) -> T:
    try:
        with reading(settings.database_url) as read:
            return fn(read)
    except NotLookedAt as error:
        _stop(str(error))


def _stop(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    raise SystemExit(2)


def _finding(one: Finding) -> dict[str, Any]:
    said = {"number": one.invariant.number, "title": one.invariant.title, "status": one.status}
    return said | {"why_not": one.invariant.not_yet, "violations": [asdict(v) for v in one.violations]}


def _verdict(one: Verdict) -> dict[str, Any]:
    return asdict(one) | {"ok": one.ok, "sentence": one.sentence}


def _print_findings(found: list[Finding]) -> None:
    for one in found:
        why = f" ({one.invariant.not_yet})" if one.invariant.not_yet else ""
        print(f"{one.invariant.number:>3}  {one.status:<18}  {one.invariant.title}{why}")
        for violation in one.violations:
            print(f"     - {violation.sentence}\n       rows: {', '.join(violation.rows)}\n       {violation.way_out}")
    broken = sum(bool(one.violations) for one in found)
    print(f"\n{broken} of {len(found)} are violated." if broken else "\nNothing is wrong.")


def _print_verdicts(found: list[Verdict]) -> None:
    for one in found:
        print(f"{'ok    ' if one.ok else 'BROKEN'}  {one.tenant_id}: {one.sentence}")
        if one.broken:
            print(f"        first break at row {one.broken.sequence}. {one.broken.way_out}")
    if not found:
        print("There are no audit rows yet.")


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))
