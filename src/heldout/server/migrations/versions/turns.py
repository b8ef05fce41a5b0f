"""Turns, quotas, cancelled jobs; tokens know who made them; tries by name and address."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from heldout.server.storage import create, drop

revision = "3"
down_revision = "receipts"


def _number(name: str, kind: Any = sa.Float(precision=53)) -> "sa.Column[Any]":  # noqa: B008
    return sa.Column(name, kind, nullable=False, server_default="0")


def upgrade() -> None:
    with op.batch_alter_table("server_jobs") as table:
        table.add_column(sa.Column("owner", sa.Text(), nullable=False, server_default=""))
        for name in ("seconds", "begun", "due"):
            table.add_column(_number(name))
        table.create_index(op.f("ix_server_jobs_owner"), ["owner", "begun"])
    with op.batch_alter_table("server_artifacts") as table:
        table.add_column(_number("copied", sa.BigInteger()))
    with op.batch_alter_table("server_scorings") as table:
        table.add_column(_number("size", sa.BigInteger()))
    with op.batch_alter_table("server_tokens") as table:
        table.add_column(sa.Column("parent", sa.Text(), nullable=True))
        table.create_index(op.f("ix_server_tokens_parent"), ["parent"])
    with op.batch_alter_table("server_people") as table:
        table.drop_column("failures")
        table.drop_column("retry")
    create(
        "tries",
        "name address failures:int retry:time time:time",
        key="name address",
        index="time",
    )


def downgrade() -> None:
    # What older code does not know: a cancelled job is over, and so is what it was about.
    over = "UPDATE server_{} SET state = '{}' WHERE state IN ({})"
    op.execute(over.format("jobs", "done", "'cancelled'"))
    op.execute(over.format("evaluations", "refused", "'cancelled'"))
    op.execute(over.format("evaluations", "waiting", "'booking'"))
    op.execute(over.format("submissions", "refused", "'cancelled'"))
    op.execute(over.format("submissions", "waiting", "'booking'"))
    op.execute(over.format("artifacts", "refused", "'deleted', 'receiving'"))
    drop("tries")
    with op.batch_alter_table("server_people") as table:
        table.add_column(_number("failures", sa.Integer()))
        table.add_column(_number("retry"))
    with op.batch_alter_table("server_tokens") as table:
        table.drop_index(op.f("ix_server_tokens_parent"))
        table.drop_column("parent")
    with op.batch_alter_table("server_scorings") as table:
        table.drop_column("size")
    with op.batch_alter_table("server_artifacts") as table:
        table.drop_column("copied")
    with op.batch_alter_table("server_jobs") as table:
        table.drop_index(op.f("ix_server_jobs_owner"))
        for name in ("due", "begun", "seconds", "owner"):
            table.drop_column(name)
