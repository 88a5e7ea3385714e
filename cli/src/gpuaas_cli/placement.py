"""Parses the arguments of `instance deploy`: the nodes of each component, the topology, and the app's inputs.

Components and topologies come from the app's manifest, so that no command contains the vocabulary of an app.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import failures
from .context_flags import there
from .failures import CliError

if TYPE_CHECKING:
    from .session import Session

Placement = dict[str, list[str]]
Manifest = dict[str, Any]


def read_manifest(at: Session, app: str, version: str | None) -> Manifest | None:
    """Return the manifest of the version to deploy; None if the caller may not read it, or the version does not exist
    (the platform then checks the arguments). Raises CliError if the catalog has no such app."""
    from gpuaas_sdk.client.errors import Denied, NotFound

    with suppress(Denied):
        catalog = {entry.app.slug: entry for entry in at.client.get_catalog(at.project_id).items}
        if app not in catalog:
            close = get_close_matches(app, catalog, n=1)
            hint = f"Did you mean {close[0]}? " if close else ""
            way_out = f"{hint}See the apps: {there('gpuaas catalog')}"
            raise CliError(f"The catalog has no app called {app}.", way_out, failures.NOT_FOUND)
        if version in (None, catalog[app].version):
            return catalog[app].manifest
        with suppress(NotFound):
            return at.client.get_version(app, version).manifest
    return None


def read_places(at: Session, places: list[str], manifest: Manifest | None) -> Placement:
    """Return the allocation ids of each component: {"controller": ["alloc_…"]}. Raises CliError if the arguments are
    invalid or name a component that the app does not have."""
    known = [component["key"] for component in (manifest or {}).get("components", [])]
    components = ", ".join(known)
    if not places:
        of_app = f" Components: {components}." if known else ""
        way_out = f"Add --place COMPONENT=ALLOCATION.{of_app} See the nodes: {there('gpuaas allocation list')}"
        raise CliError("No node was named for any component.", way_out, failures.USAGE)
    wanted: Placement = {}
    for text in places:
        component, separator, names = text.partition("=")
        if not separator or not component or not names:
            way_out = "Write --place COMPONENT=ALLOCATION[,ALLOCATION…]."
            raise CliError(f"Invalid placement {text!r}.", way_out, failures.USAGE)
        if known and component not in known:
            raise CliError(f"The app has no component {component!r}.", f"Components: {components}.", failures.USAGE)
        wanted.setdefault(component, []).extend(name for name in names.split(",") if name)
    only_ids = all(name.startswith("alloc_") for names in wanted.values() for name in names)
    allocations = [] if only_ids else at.allocations()
    return {component: [at.allocation_id(name, allocations) for name in names] for component, names in wanted.items()}


def choose_topology(wanted: str | None, placement: Placement, manifest: Manifest | None) -> str | None:
    """Return the named topology, or without a name the first topology that fits the placement. Raises CliError if there
    is none. Without a readable manifest, the name is returned unchecked, or None."""
    topologies = (manifest or {}).get("topologies", [])
    if not topologies:
        return wanted
    listed = "; ".join(_described(topology) for topology in topologies)
    if wanted is None:
        fitting = [topology["key"] for topology in topologies if _fits(topology["components"], placement)]
        if not fitting:
            raise CliError("The placement fits no topology of the app.", f"Topologies: {listed}.", failures.USAGE)
        return fitting[0]
    if wanted not in (topology["key"] for topology in topologies):
        raise CliError(f"The app has no topology {wanted!r}.", f"Topologies: {listed}.", failures.USAGE)
    return wanted


def _placeable(components: dict[str, Any]) -> dict[str, Any]:
    """Return the components that a placement can name. A component that always shares the node of another component
    cannot be named."""
    return {key: rule for key, rule in components.items() if not rule.get("shares_with")}


def _fits(components: dict[str, Any], placement: Placement) -> bool:
    placeable = _placeable(components)
    counts = {key: len(placement.get(key, [])) for key in placeable}
    return set(placement) <= set(placeable) and all(
        rule["min"] <= counts[key] <= rule["max"] for key, rule in placeable.items()
    )


def _described(topology: dict[str, Any]) -> str:
    """Describe a topology: `multi_node (1 controller, 1-64 worker)`."""
    parts = []
    for key, rule in _placeable(topology["components"]).items():
        least, most = rule["min"], rule["max"]
        parts.append(f"{least if least == most else f'{least}-{most}'} {key}")
    return f"{topology['key']} ({', '.join(parts)})"


def read_inputs(pairs: list[str], file: Path | None) -> dict[str, Any]:
    """Return the inputs of the file together with the `KEY=VALUE` pairs. A pair replaces the same key of the file."""
    inputs = read_object(file) if file else {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise CliError(f"Invalid input {pair!r}.", "Write --input KEY=VALUE.", failures.USAGE)
        inputs[key] = _value(value)
    return inputs


def read_object(file: Path) -> dict[str, Any]:
    """Read a JSON object from a file, or from standard input if the file is `-`. Raises CliError if it is not a JSON
    object."""
    try:
        read = json.loads(sys.stdin.read() if str(file) == "-" else file.read_text())
    except (OSError, ValueError) as error:
        raise CliError(f"Cannot read {file} as JSON: {error}", "Give a JSON object.", failures.USAGE) from error
    if not isinstance(read, dict):
        raise CliError(f"{file} does not contain a JSON object.", 'Write it like {"key": 1}.', failures.USAGE)
    return read


def _value(text: str) -> Any:
    """Parse the text as JSON. Text that is not valid JSON is returned unchanged."""
    try:
        return json.loads(text)
    except ValueError:
        return text
