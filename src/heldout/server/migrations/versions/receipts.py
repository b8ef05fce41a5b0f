"""The newest receipt, by which a ledger that was put back is noticed."""

import json

import sqlalchemy as sa
from alembic import op

from heldout.server.storage import create, drop

revision = "receipts"
down_revision = "2"


def upgrade() -> None:
    table = create("receipts", "place ledger sequence:big hash", key="place")
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
    drop("receipts")
