"""What a caller names in PostgreSQL: a table, or a query that must give the same rows each time."""

import re
from typing import Any

from heldout.data.reading import or_raise
from heldout.errors import ArgumentError, HeldoutError

__all__ = ["bare_tables", "checked_query", "parts_of"]

NOT_REPEATABLE = {
    *("random", "random_normal", "rand", "uuid", "uuid_generate_v4", "clock_timestamp"),
    *("gen_random_uuid", "timeofday", "statement_timestamp", "nextval", "setseed"),
}


def parts_of(table: str) -> tuple[str, ...]:
    """The names in schema.table.

    >>> parts_of('clinic."visits.2024"')
    ('clinic', 'visits.2024')
    """
    bare, quoted = r'[^".\0]+', r'"(?:[^"\0]|"")+"'
    if not isinstance(table, str) or not re.fullmatch(
        rf"(?:{bare}|{quoted})(?:\.(?:{bare}|{quoted}))?", table
    ):
        raise ArgumentError(
            "table must be a name or schema.name. Put a name that holds a dot or a quote in "
            'quotes, as in "visits.2024".'
        )
    found = re.findall(rf"{quoted}|{bare}", table)
    return tuple(each[1:-1].replace('""', '"') if each.startswith('"') else each for each in found)


def checked_query(query: str) -> str:
    from sqlglot import exp, parse

    def statements() -> list[Any]:
        return list(parse(query, read="postgres"))

    def refuse() -> HeldoutError:
        return ArgumentError("query must be one SELECT. Write one.")

    found = or_raise(statements, refuse) if isinstance(query, str) else []
    if len(found) != 1 or not isinstance(found[0], exp.Query) or "\0" in query:
        raise refuse()
    called = {each.sql_name().lower() for each in found[0].find_all(exp.Func)}
    called |= {str(each.this).lower() for each in found[0].find_all(exp.Anonymous)}
    if called & NOT_REPEATABLE or found[0].find(exp.TableSample):
        raise ArgumentError(
            "query must give the same rows each time, so it must not draw at random or read a "
            "clock. Store what it gives in a table."
        )
    return query.strip().rstrip(";")


def bare_tables(query: str) -> list[tuple[int, str]]:
    """Where a query names a table without a schema, and which; its own WITH names are none.

    >>> bare_tables('WITH x AS (SELECT * FROM Stays) SELECT * FROM x JOIN public.t ON TRUE')
    [(25, 'stays')]
    """
    from sqlglot import exp, parse_one

    tree = parse_one(query, read="postgres")
    own = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    found = [
        (each.this.meta["start"], each.name if each.this.quoted else each.name.lower())
        for each in tree.find_all(exp.Table)
        if isinstance(each.this, exp.Identifier) and not each.db and each.name.lower() not in own
    ]
    return sorted(found)
