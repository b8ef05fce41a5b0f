"""Tables as migrations write them: one word for each column."""

from typing import Any

import sqlalchemy as sa
from alembic import op

TYPES: dict[str, Any] = {
    "": sa.Text(),
    "big": sa.BigInteger(),
    "flag": sa.Boolean(),
    "int": sa.Integer(),
    "json": sa.JSON(),
    "number": sa.Float(precision=53),
    "time": sa.Float(precision=53),
}


def create(name: str, columns: str, *, key: str, index: str = "", unique: str = "") -> sa.Table:
    """Create `server_NAME`; columns are words such as `owner`, `size:big` and `expires:time?`.

    A column is text unless its type follows a colon, and never NULL unless a question mark does.
    `index` names columns with an index each, `unique` those that are unique together.
    """
    table, keys, together = f"server_{name}", key.split(), unique.split()
    parts: list[sa.schema.SchemaItem] = []
    for word in columns.split():
        column, _, kind = word.removesuffix("?").partition(":")
        several = len(keys) > 1 and column in keys
        parts.append(
            sa.Column(
                column,
                TYPES[kind],
                nullable=word.endswith("?"),
                autoincrement=False if several else "auto",
            )
        )
    parts.append(sa.PrimaryKeyConstraint(*keys, name=op.f(f"pk_{table}")))
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
