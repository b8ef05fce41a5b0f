"""Tables as migrations write them: one word for each column."""

import sqlalchemy as sa
from alembic import op

from heldout.server.storage import columns_of


def create(name: str, columns: str, *, key: str, index: str = "", unique: str = "") -> sa.Table:
    """Create `server_NAME`; columns are words that `columns_of` reads.

    `index` names columns with an index each, `unique` those that are unique together.
    """
    table, together = f"server_{name}", unique.split()
    parts: list[sa.schema.SchemaItem] = [*columns_of(columns, key=key)]
    parts.append(sa.PrimaryKeyConstraint(*key.split(), name=op.f(f"pk_{table}")))
    if together:
        parts.append(sa.UniqueConstraint(*together, name=op.f(f"uq_{table}_{together[0]}")))
    made = op.create_table(table, *parts)
    for column in index.split():
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column], unique=False)
    return made


def drop(*names: str) -> None:
    """Drop tables, with their indices."""
    for name in names:
        op.drop_table(f"server_{name}")
