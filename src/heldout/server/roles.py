"""The two roles that serve: each may do in the database what it must, and nothing more."""

import os
from importlib.resources import files

from heldout.errors import ArgumentError
from heldout.server.storage import Store

__all__ = ["SCRIPT", "give_rights"]

SCRIPT = files("heldout.server").joinpath("roles.sql").read_text(encoding="utf-8")
PASSWORDS = {
    "heldout_web": "HELDOUT_WEB_PASSWORD",
    "heldout_worker": "HELDOUT_WORKER_PASSWORD",
}
"""Where the passwords of the roles are, if they are to be set."""


def give_rights(store: Store) -> None:
    """Make the roles if need be, and give each its rights; only the tables' owner can."""
    if not store.postgres:
        raise ArgumentError("Roles need PostgreSQL. Pass --database, or leave --prepare out.")
    with store.write() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(SCRIPT)
        for role, variable in PASSWORDS.items():
            if password := os.environ.get(variable):
                # format() quotes on the server; what is executed is never put together here.
                cursor.execute(
                    "SELECT format('ALTER ROLE %%I PASSWORD %%L', %s, %s)", (role, password)
                )
                for (statement,) in cursor.fetchall():
                    cursor.execute(statement)
