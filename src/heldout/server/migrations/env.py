"""Alembic's script: runs the steps in `versions`, in one transaction."""

import sqlalchemy as sa
from alembic import context

from heldout.server.storage import metadata

LOCK = 0x68656C64  # of two processes that start at once one migrates


def run() -> None:
    engine = sa.create_engine(context.config.get_main_option("sqlalchemy.url") or "")
    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_lock(LOCK)))
        context.configure(
            connection=connection,
            target_metadata=metadata,
            render_as_batch=True,
            version_table="server_version",
        )
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    engine.dispose()


if hasattr(context, "config"):  # Alembic runs this file; whoever merely imports it does not
    run()
