"""Detects changes of the contract that break callers of the last release.

The released and the current document are compared. A caller may keep sending what was accepted (nothing newly required,
no accepted value rejected) and keep reading what was there (no field removed, none newly optional). An intended break
is announced in `contracts/released/breaks.json` with its reason.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RELEASED = "released"
DOCUMENTS = ("openapi.json", "asyncapi.json")
BREAKS = "breaks.json"
Document = dict[str, Any]


def breaks(folder: Path, fresh: dict[str, str]) -> list[str]:
    """Return a sentence for each breaking change that is not announced in `breaks.json`, and for each announcement
    without a breaking change."""
    released = folder / RELEASED
    noted = json.loads(_read(released / BREAKS) or "{}")
    breaks: list[str] = []
    for name in DOCUMENTS:
        before = _read(released / name)
        if before is not None:
            breaks += COMPARE[name](json.loads(before), json.loads(fresh[name]))
    unused = [f"{BREAKS} announces what is not broken: {note}" for note in noted if note not in breaks]
    return [change for change in breaks if change not in noted] + unused


def write_release(folder: Path) -> None:
    """Store the current contract as the released one, for later comparisons, and clear the announced breaks."""
    (folder / RELEASED).mkdir(exist_ok=True)
    for name in DOCUMENTS:
        (folder / RELEASED / name).write_text((folder / name).read_text())
    (folder / RELEASED / BREAKS).write_text("{}\n")


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def compare_openapi(before: Document, after: Document) -> Iterator[str]:
    for path, methods in before["paths"].items():
        for method, operation in methods.items():
            where = f"{method.upper()} {path}"
            now = after["paths"].get(path, {}).get(method)
            if now is None:
                yield f"{where} is gone"
            else:
                yield from _operation(where, operation, now, Schemas(before, after))


def compare_asyncapi(before: Document, after: Document) -> Iterator[str]:
    for name, channel in before["channels"].items():
        now = after["channels"].get(name)
        if now is None or now["address"] != channel["address"]:
            yield f"the channel {name} ({channel['address']}) is gone"
    messages, schemas = after["components"]["messages"], Schemas(before, after)
    for name, message in before["components"]["messages"].items():
        if name not in messages:
            yield f"the event {name} is gone"
        else:
            yield from schemas.read(f"the event {name}", message["payload"], messages[name]["payload"])


COMPARE = {"openapi.json": compare_openapi, "asyncapi.json": compare_asyncapi}


def _operation(where: str, before: Document, after: Document, schemas: "Schemas") -> Iterator[str]:
    yield from _parameters(where, before, after, schemas)
    yield from _body(where, before.get("requestBody"), after.get("requestBody"), schemas)
    for status, answer in before["responses"].items():
        now = after["responses"].get(status)
        if now is None:
            yield f"{where} no longer answers {status}"
            continue
        for kind, content in answer.get("content", {}).items():
            if kind not in now.get("content", {}):
                yield f"{where} no longer answers {status} as {kind}"
            else:
                shown = now["content"][kind].get("schema", {})
                yield from schemas.read(f"{where} → {status}", content.get("schema", {}), shown)


def _parameters(where: str, before: Document, after: Document, schemas: "Schemas") -> Iterator[str]:
    known = {(parameter["in"], parameter["name"]): parameter for parameter in before.get("parameters", [])}
    now = {(parameter["in"], parameter["name"]): parameter for parameter in after.get("parameters", [])}
    for (place, name), parameter in known.items():
        if (place, name) not in now:
            yield f"{where} no longer takes the {place} parameter {name}"
        else:
            yield from schemas.sent(f"{where} {place} {name}", parameter["schema"], now[place, name]["schema"])
    for (place, name), parameter in now.items():
        if parameter.get("required") and not known.get((place, name), {}).get("required"):
            yield f"{where} newly requires the {place} parameter {name}"


def _body(where: str, before: Document | None, after: Document | None, schemas: "Schemas") -> Iterator[str]:
    if after and after.get("required") and not (before and before.get("required")):
        yield f"{where} newly requires a body"
    for kind, content in (before or {}).get("content", {}).items():
        now = (after or {}).get("content", {}).get(kind)
        if now is None:
            yield f"{where} no longer takes {kind}"
        else:
            yield from schemas.sent(f"{where} body", content.get("schema", {}), now.get("schema", {}))


class Schemas:
    """Compares two schemas and the schemas that they refer to. Each pair of references is compared once."""

    def __init__(self, before: Document, after: Document) -> None:
        self._before, self._after = before, after
        self._seen: set[tuple[str, str, str]] = set()

    def sent(self, where: str, before: Document, after: Document) -> Iterator[str]:
        """Yield the breaking changes of what callers send: everything accepted before must still be accepted."""
        yield from self._walk("sent", where, before, after)

    def read(self, where: str, before: Document, after: Document) -> Iterator[str]:
        """Yield the breaking changes of what callers read: everything present before must still be present."""
        yield from self._walk("read", where, before, after)

    def _walk(self, way: str, where: str, before: Document, after: Document) -> Iterator[str]:
        pair = (way, before.get("$ref", ""), after.get("$ref", ""))
        if pair[1] and pair in self._seen:
            return
        self._seen.add(pair)
        before, after = _followed(self._before, before), _followed(self._after, after)
        yield from _values(way, where, before, after)
        yield from self._members(way, where, before, after)
        if "items" in before:
            yield from self._walk(way, f"{where}[]", before["items"], after.get("items", {}))
        for number, part in enumerate(before.get("allOf", [])):
            if number < len(after.get("allOf", [])):
                yield from self._walk(way, where, part, after["allOf"][number])

    def _members(self, way: str, where: str, before: Document, after: Document) -> Iterator[str]:
        known, now = before.get("properties", {}), after.get("properties", {})
        was, must = set(before.get("required", [])), set(after.get("required", []))
        for name, schema in known.items():
            if name not in now:
                yield f"{where}: the field {name} is gone"
            else:
                yield from self._walk(way, f"{where}.{name}", schema, now[name])
        for name in sorted(must - was if way == "sent" else (was - must) & now.keys()):
            yield f"{where}: the field {name} " + ("is newly required" if way == "sent" else "may newly be missing")


def _followed(document: Document, schema: Document) -> Document:
    """Return the schema that a reference points to. A choice of one schema or null becomes that schema with the type
    null added, so that nullability is compared as a type."""
    while "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    options = [option for option in schema.get("anyOf", []) if option.get("type") != "null"]
    if len(options) == 1 and len(schema["anyOf"]) == 2:
        inner = _followed(document, options[0])
        return inner | {"type": [*_types(inner), "null"]} if _types(inner) else inner
    return schema


def _types(schema: Document) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def _values(way: str, where: str, before: Document, after: Document) -> Iterator[str]:
    """Yield the changes of types, enum values and limits that break callers:
    accepting fewer values than before, or returning more types."""
    was, now = set(_types(before)), set(_types(after))
    changed: set[str] = (was - now if now else set()) if way == "sent" else (now - was if was else set())
    if changed:
        yield f"{where}: {'no longer takes' if way == 'sent' else 'may newly be'} {', '.join(sorted(changed))}"
    removed = set(map(str, before.get("enum", []))) - set(map(str, after.get("enum", before.get("enum", []))))
    if removed:
        yield f"{where}: the values {', '.join(sorted(removed))} are gone"
    if way == "sent":
        yield from _bounds(where, before, after)


TIGHTER = {"maxLength": -1, "maximum": -1, "maxItems": -1, "minLength": 1, "minimum": 1, "minItems": 1}


def _bounds(where: str, before: Document, after: Document) -> Iterator[str]:
    for name, direction in TIGHTER.items():
        if name in after and (name not in before or (after[name] - before[name]) * direction > 0):
            yield f"{where}: {name} is now {after[name]}"
    if after.get("pattern") and after["pattern"] != before.get("pattern"):
        yield f"{where}: the pattern is another"
