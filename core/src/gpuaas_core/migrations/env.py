"""Alembic's entry point: `migrate` passes the connection and the metadata, so there is no ini file."""

import importlib

from alembic import context

importlib.import_module("gpuaas_core.api.app")  # every room declares its tables
given = context.config.attributes
context.configure(
    connection=given["connection"], target_metadata=given["metadata"], render_as_batch=True, compare_type=True
)
with context.begin_transaction():
    context.run_migrations()
