"""Generates the page of events, with the meaning and fields of each."""

from collections.abc import Iterator

from ...events.event_log import IDENTIFIERS, TYPES
from ...events.shapes import FAMILIES, FIELDS, SHARED, family, fields
from ...kit.json_types import Json, is_array
from .markdown import item, paragraph, sentence, table

HEAD = """# Events

An event states what is now true. It is a [CloudEvent](https://github.com/cloudevents/spec) in structured JSON, written
in the same transaction as the change itself: there is no change without its event and no event without its change.
How to follow events: [the API guide](../guides/api.md#events). For programs:
[asyncapi.json](../../contracts/asyncapi.json).

```json
{"specversion": "1.0", "id": "evt_…", "source": "/v1/tenants/ten_…", "type": "apps.instance.running",
 "subject": "inst_…", "time": "2026-11-15T12:00:00.000Z", "datacontenttype": "application/json",
 "sequence": 42, "correlationid": "cor-…", "traceid": "…", "data": {"app_slug": "…", "state": "running"}}
```

`sequence` is dense per tenant: 42 is followed by 43. `subject` is the id of what changed. `data` always has these,
null where there is none (never null in events whose type begins with `apps.`):
"""


def page() -> str:
    shared = table(("field", "meaning"), [(f"`{name}`", sentence(SHARED[name])) for name in IDENTIFIERS])
    return HEAD + "\n" + shared + "".join(_groups()) + _glossary()


def _groups() -> Iterator[str]:
    by_title: dict[str, list[str]] = {title: [] for title, _ in FAMILIES.values()}
    for type in sorted(TYPES):
        by_title[FAMILIES[family(type)][0]].append(type)
    for title, types in by_title.items():
        if types:
            yield f"\n## {title}\n\n" + _group(types)


def _group(types: list[str]) -> str:
    """Return the lists of event types, one list per combination of fields, with the fields above the list."""
    by_fields: dict[str, list[str]] = {}
    for type in sorted(types, key=lambda one: (_carried(one) != "", one)):
        by_fields.setdefault(_carried(type), []).append(type)
    return "\n".join(_alike(alike, carried) for carried, alike in by_fields.items())


def _alike(types: list[str], carried: str) -> str:
    head = paragraph(f"With {carried} in `data`:") + "\n" if carried else ""
    return head + "".join(item(f"`{type}`: {sentence(TYPES[type])}") for type in types)


def _carried(type: str) -> str:
    return ", ".join(f"`{name}`" if always else f"`{name}`?" for name, always in fields(family(type)).items())


def _glossary() -> str:
    rows = [(f"`{name}`", _kind(schema), sentence(words)) for name, (schema, words) in sorted(FIELDS.items())]
    marks = "A question mark above: not in every event of the type. Readers ignore fields they do not know."
    return f"\n## The fields\n\n{marks}\n\n" + table(("field", "kind", "meaning"), rows)


def _kind(schema: Json) -> str:
    type = schema["type"]
    names = type if is_array(type) else [type]
    return " or ".join({"array": "list of strings"}.get(str(name), str(name)) for name in names)
