"""The newest receipt, by which a ledger that was put back is noticed."""

import json

import sqlalchemy as sa
from alembic import op

revision = "receipts"
down_revision = "2"


def upgrade() -> None:
    table = op.create_table(
        "server_receipts",
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("ledger", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_server_receipts")),
    )
    statements = sa.text("SELECT statement FROM server_evaluations WHERE statement IS NOT NULL")
    known = []
    for (content,) in op.get_bind().execute(statements):
        statement = json.loads(content) if isinstance(content, str) else content
        if statement and statement.get("signed"):
            receipt, ledger = statement["receipt"], statement["signed"]["statement"]["ledger"]
            known.append((receipt["sequence"], receipt["hash"], ledger))
    if known:
        sequence, digest, ledger = max(known)
        row = {"place": "newest", "ledger": ledger, "sequence": sequence, "hash": digest}
        op.bulk_insert(table, [row])


def downgrade() -> None:
    op.drop_table("server_receipts")
