"""Workers that are alive, a second factor, and people who sign in elsewhere."""

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    op.create_table(
        "server_workers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("begun", sa.Float(precision=53), nullable=False),
        sa.Column("seen", sa.Float(precision=53), nullable=False),
        sa.Column("job", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_server_workers")),
    )
    with op.batch_alter_table("server_people") as table:
        table.add_column(sa.Column("factor", sa.JSON(), nullable=True))
        table.add_column(sa.Column("identity", sa.Text(), nullable=True))
        table.create_index(op.f("ix_server_people_identity"), ["identity"])


def downgrade() -> None:
    with op.batch_alter_table("server_people") as table:
        table.drop_index(op.f("ix_server_people_identity"))
        table.drop_column("identity")
        table.drop_column("factor")
    op.drop_table("server_workers")
