"""Workers that are alive."""

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


def downgrade() -> None:
    op.drop_table("server_workers")
