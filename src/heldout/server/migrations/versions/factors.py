"""Who people are at a provider, their second factor; when a data set was closed."""

import time

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"


def upgrade() -> None:
    with op.batch_alter_table("server_people") as table:
        table.add_column(sa.Column("subject", sa.Text(), nullable=True))
        table.add_column(sa.Column("factor", sa.JSON(), nullable=True))
        table.create_unique_constraint(op.f("uq_server_people_subject"), ["subject"])
    with op.batch_alter_table("server_datasets") as table:
        table.add_column(sa.Column("closed", sa.Float(precision=53), nullable=True))
    closed = sa.text("UPDATE server_datasets SET closed = :now WHERE state = 'closed'")
    op.execute(closed.bindparams(now=time.time()))  # as far as anybody knows


def downgrade() -> None:
    # Older code knows neither door: whoever came by the provider needs a link from now on.
    op.execute("UPDATE server_evaluations SET state = 'lost' WHERE state = 'expired'")
    with op.batch_alter_table("server_datasets") as table:
        table.drop_column("closed")
    with op.batch_alter_table("server_people") as table:
        table.drop_constraint(op.f("uq_server_people_subject"), type_="unique")
        table.drop_column("factor")
        table.drop_column("subject")
