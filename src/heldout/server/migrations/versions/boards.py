"""Leaderboards and their submissions."""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    op.create_table(
        "server_boards",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("each", sa.Integer(), nullable=False),
        sa.Column("ends", sa.Float(precision=53), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_server_boards")),
    )
    op.create_index(op.f("ix_server_boards_dataset"), "server_boards", ["dataset"], unique=False)
    op.create_table(
        "server_submissions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("board", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("artifact", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("improved", sa.Boolean(), nullable=True),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("visible", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_submissions")),
        sa.UniqueConstraint("owner", "key", name=op.f("uq_server_submissions_owner")),
    )
    for name in ("board", "owner"):
        index = op.f(f"ix_server_submissions_{name}")
        op.create_index(index, "server_submissions", [name], unique=False)


def downgrade() -> None:
    op.drop_table("server_submissions")
    op.drop_table("server_boards")
