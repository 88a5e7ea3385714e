"""The schema: up, down and up again; and what the code declares is what the migrations make."""

from collections.abc import Iterator
from pathlib import Path

import gpuaas_core.main  # noqa: F401 - every room declares its tables
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from gpuaas_core.kit.db import metadata
from gpuaas_core.migrations.migrate import alembic_config, downgrade, migrate
from sqlalchemy import Engine, create_engine, inspect, text

from core.tests.support.fixtures import database_url, new_store, remove_store


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    new_store(tmp_path)
    yield database_url(tmp_path)
    remove_store(tmp_path)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url)
    yield engine
    engine.dispose()


def _tables(engine: Engine) -> set[str]:
    return set(inspect(engine).get_table_names()) - {"alembic_version"}


def test_the_schema_goes_up_down_and_up_again(url: str, engine: Engine) -> None:
    migrate(url)
    assert _tables(engine) == set(metadata.tables)
    downgrade(url, "base")
    assert _tables(engine) == set()
    migrate(url)
    assert _tables(engine) == set(metadata.tables)


def test_the_code_declares_what_the_migrations_make(url: str, engine: Engine) -> None:
    migrate(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == [], "add a migration for what changed in tables.py"


def test_partial_unique_indexes_are_really_partial(url: str, engine: Engine) -> None:
    """Autogenerate does not look at the condition of an index, and five promises hang on one."""
    migrate(url)
    with engine.connect() as connection:
        made = {
            "sqlite": "select name, sql from sqlite_master where sql like '%UNIQUE%WHERE%'",
            "postgresql": "select indexname, indexdef from pg_indexes where indexdef like '%UNIQUE%WHERE%'",
        }
        found = {name: sql.lower() for name, sql in connection.execute(text(made[engine.dialect.name]))}
    for index, words in (
        ("uq_allocations_live_node", ["state", "<> 'released'"]),
        ("uq_nodes_living_name", ["state", "<> 'retired'"]),
        ("uq_instances_live_name", ["state", "<> 'deleted'"]),
        ("uq_operations_live_target", ["status", "'queued'", "'running'"]),
        ("uq_operations_live_lock", ["status", "'queued'", "'running'", "lock_shared"]),
    ):
        assert all(word in found[index].partition("where")[2] for word in words), found[index]


def test_migrating_again_changes_nothing_and_keeps_the_stores_identity(url: str, engine: Engine) -> None:
    migrate(url)
    with engine.connect() as connection:
        before = connection.execute(text("select value from store_facts where name = 'epoch'")).scalar_one()
    migrate(url)
    with engine.connect() as connection:
        assert connection.execute(text("select value from store_facts where name = 'epoch'")).scalar_one() == before


def test_there_is_one_newest_revision(engine: Engine) -> None:
    with engine.connect() as connection:
        assert len(ScriptDirectory.from_config(alembic_config(connection)).get_heads()) == 1


def test_a_migration_that_breaks_leaves_the_store_as_it_was(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_connection: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("gpuaas_core.migrations.migrate.ensure_store_epoch", fail)
    with pytest.raises(OSError, match="full"):
        migrate(url)
    assert _tables(engine) == set()


def test_the_keys_and_sessions_of_an_older_store_go_on_working(url: str, engine: Engine) -> None:
    migrate(url, "0001")
    jwk = '{"kty": "OKP", "crv": "Ed25519", "x": "abc"}'
    with engine.begin() as store:
        people = "insert into principals (id, kind, name, public_jwk, created_at) values (:id, :kind, :id, :jwk, 1)"
        store.execute(text(people), [{"id": "sa_1", "kind": "service_account", "jwk": jwk}])
        store.execute(text(people), [{"id": "usr_1", "kind": "user", "jwk": None}])
        opened = "insert into sessions (token_hash, principal_id, expires_at, created_at) values (:hash, 'sa_1', 9, 1)"
        store.execute(text(opened), {"hash": "0123456789abcdef" * 4})
    migrate(url)
    with engine.connect() as store:
        (key,) = store.execute(text("select * from principal_keys")).all()
        assert (key.principal_id, key.retired_at) == ("sa_1", None)
        assert "abc" in str(key.public_jwk)
        assert store.execute(text("select id from sessions")).scalar_one().startswith("ses_")
    downgrade(url, "0001")
    with engine.connect() as store:
        kept = dict(store.execute(text("select id, public_jwk from principals")).all())
        assert "abc" in str(kept["sa_1"])
        assert kept["usr_1"] is None


def test_versions_of_an_older_store_keep_what_may_be_done_with_them(url: str, engine: Engine) -> None:
    migrate(url, "0004_triage")
    with engine.begin() as store:
        store.execute(text("insert into apps values ('app_1', 'echo', 'Echo', '', 1)"))
        made = "insert into app_versions (id, app_slug, version, manifest, published_at, created_at) values (:v, 'echo', :v, '{}', :at, 1)"
        store.execute(text(made), [{"v": "1.0.0", "at": 7}, {"v": "2.0.0", "at": None}, {"v": "3.0.0", "at": 8}])
    migrate(url)
    with engine.begin() as store:
        states = dict(store.execute(text("select version, state from app_versions")).all())
        assert states == {"1.0.0": "published", "2.0.0": "draft", "3.0.0": "published"}
        store.execute(text("update app_versions set state = 'withdrawn' where version = '3.0.0'"))
    downgrade(url, "0004_triage")
    with engine.connect() as store:
        deployable = dict(store.execute(text("select version, published_at from app_versions")).all())
        assert deployable == {"1.0.0": 7, "2.0.0": None, "3.0.0": None}, "what was withdrawn must not come back"


def test_the_ssh_authorities_of_an_older_store_are_the_first_ones(url: str, engine: Engine) -> None:
    migrate(url, "0011_credentials")
    made = "insert into ssh_authorities (tenant_id, purpose, public_key, sealed_private_key, created_at) values ('ten_1', :p, 'ssh-ed25519 AAAA', :k, 7)"
    with engine.begin() as store:
        store.execute(text("insert into tenants values ('ten_1', 'acme', 'Acme', 1)"))
        store.execute(text(made), [{"p": "user", "k": b"sealed user"}, {"p": "host", "k": b"sealed host"}])
    migrate(url)
    with engine.connect() as store:
        rows = store.execute(text("select * from ssh_authorities order by purpose desc")).all()
        assert [(row.purpose, row.number, row.state, row.activated_at) for row in rows] == [
            ("user", 1, "active", 7),
            ("host", 1, "active", 7),
        ]
        assert bytes(rows[0].sealed_private_key) == b"sealed user"
    downgrade(url, "0011_credentials")
    with engine.connect() as store:
        kept = dict(store.execute(text("select purpose, sealed_private_key from ssh_authorities")).all())
        assert {purpose: bytes(sealed) for purpose, sealed in kept.items()} == {
            "user": b"sealed user",
            "host": b"sealed host",
        }
    migrate(url)
    with engine.begin() as store:
        store.execute(text("update ssh_authorities set number = 2 where purpose = 'user'"))
    with pytest.raises(RuntimeError, match="rotated"):
        downgrade(url, "0011_credentials")
    with engine.connect() as store:
        assert len(store.execute(text("select number from ssh_authorities")).all()) == 2, (
            "a refused downgrade lost keys"
        )
