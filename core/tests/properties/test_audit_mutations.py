"""1,000 random changes of an audit trail by an attacker who can write the store but does not hold the key: all are found."""

import random
from collections.abc import Callable

from gpuaas_core.audit.chain import FIELDS, GENESIS, link
from gpuaas_core.audit.tables import audit as audit_table
from gpuaas_core.audit.verify import verify
from gpuaas_core.http.call import Platform
from sqlalchemy import select

from core.tests.support.audit_trail import TENANT, Rows, replace

TRIALS = 1000


def edit(dice: random.Random, found: Rows, names: tuple[str, ...] = (*FIELDS, "hash")) -> str:
    """One character of one field becomes another, or one number is one off."""
    row = dice.choice(found)
    name = dice.choice([name for name in names if row[name] is not None and name != "sequence"])
    value = row[name]
    if isinstance(value, int):
        row[name] = value + dice.choice([-1, 1])
    else:
        at = dice.randrange(len(value))
        row[name] = value[:at] + dice.choice([c for c in "0aZ_é" if c != value[at]]) + value[at + 1 :]
    return f"edit {name} of {row['sequence']}"


def blank(dice: random.Random, found: Rows) -> str:
    row = dice.choice([row for row in found if row["project_id"] or row["resource_id"]])
    name = dice.choice([name for name in ("project_id", "resource_id") if row[name]])
    row[name] = None
    return f"blank {name} of {row['sequence']}"


def delete(dice: random.Random, found: Rows) -> str:
    return f"delete {found.pop(dice.randrange(len(found)))['sequence']}"


def delete_and_close_up(dice: random.Random, found: Rows) -> str:
    at = dice.randrange(len(found))
    del found[at]
    for row in found[at:]:
        row["sequence"] -= 1
    return f"delete {at + 1} and renumber"


def add(dice: random.Random, found: Rows) -> str:
    """A row between two others or before the first; the later ones make place."""
    at = dice.randrange(len(found))
    fresh = dict(dice.choice(found)) | {"sequence": at + 1}
    fresh["hash"] = link(found[at - 1]["hash"] if at else GENESIS, fresh)
    for row in found[at:]:
        row["sequence"] += 1
    found.insert(at, fresh)
    return f"insert at {at + 1}"


def add_outside(dice: random.Random, found: Rows) -> str:
    number = dice.choice([0, -1, len(found) + 1, len(found) + 5])
    found.append(dict(dice.choice(found)) | {"sequence": number})
    return f"insert as {number}"


def swap(dice: random.Random, found: Rows) -> str:
    one, other = dice.sample(found, 2)
    one["sequence"], other["sequence"] = other["sequence"], one["sequence"]
    return f"swap {one['sequence']} and {other['sequence']}"


def truncate(dice: random.Random, found: Rows) -> str:
    """The end is cut off, and the counter set back as if it had never been."""
    keep = dice.randrange(len(found))
    del found[keep:]
    return f"truncate to {keep}"


def _edit_content(dice: random.Random, found: Rows) -> str:
    return edit(dice, found, FIELDS)


def rewrite(dice: random.Random, found: Rows) -> str:
    """One row is changed and every hash from there on computed again: the chain is sound again."""
    said = dice.choice([_edit_content, delete_and_close_up, add])(dice, found)
    previous = GENESIS
    for row in sorted(found, key=lambda row: row["sequence"]):
        row["hash"] = previous = link(previous, row)
    return f"rewrite after {said}"


MUTATIONS: list[Callable[[random.Random, Rows], str]] = [
    edit,
    edit,
    blank,
    delete,
    delete_and_close_up,
    add,
    add_outside,
    swap,
    truncate,
    rewrite,
]


def test_every_one_of_a_thousand_random_mutations_is_found(here: Platform) -> None:
    dice = random.Random(20261115)
    mine = select(audit_table).where(audit_table.c.tenant_id == TENANT).order_by(audit_table.c.sequence)
    unseen, tried = [], {mutate.__name__: 0 for mutate in MUTATIONS}
    with here.db.engine.connect() as tx:
        original = [row._asdict() for row in tx.execute(mine)]
        for _ in range(TRIALS):
            mutate, found = dice.choice(MUTATIONS), [dict(row) for row in original]
            said = mutate(dice, found)
            tried[mutate.__name__] += 1
            with tx.begin_nested() as trial:
                replace(tx, original, found, covered=dice.random() < 0.5)
                if verify(lambda fn: fn(tx), here.checkpoints, TENANT).ok:
                    unseen.append(said)
                trial.rollback()
        assert verify(lambda fn: fn(tx), here.checkpoints, TENANT).ok
        tx.rollback()
    assert unseen == []
    assert sum(tried.values()) == TRIALS
    assert min(tried.values()) > 40, tried
