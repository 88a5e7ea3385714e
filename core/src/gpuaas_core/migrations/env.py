"""Alembic's entry point: `migrate` passes the connection, so there is no ini file."""

from alembic import context

import gpuaas_core.api.app  # noqa: F401 - every room declares its tables
from gpuaas_core.kit.db import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
