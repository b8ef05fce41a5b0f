"""A ledger of an earlier version becomes one of this version, in one transaction.

The entries stay as they were written, hashes and all. The first version kept the key in the
ledger's own row; it moves to its own place, and its traces are wiped from the file.
"""

import json
from typing import TYPE_CHECKING

import sqlalchemy as sa

from heldout.errors import LedgerKeyError
from heldout.kernel.ledger import tables
from heldout.kernel.ledger.chain import SCHEMA_VERSION, canonical
from heldout.kernel.ledger.keys import KeyPlace, check_of

if TYPE_CHECKING:
    from heldout.kernel.ledger.storage import Storage

__all__ = ["from_the_first_version"]


def from_the_first_version(storage: "Storage", place: KeyPlace) -> None:
    """Accounts get a kind, a name and a state; the key gets its own file."""

    def migrate(connection: sa.Connection) -> bool:
        version = connection.exec_driver_sql("SELECT schema_version FROM heldout_ledger")
        if version.scalar_one() != 1:
            return False  # another process was first
        own = connection.exec_driver_sql("SELECT ledger, key, sequence, head FROM heldout_ledger")
        ledger, secret, sequence, head = own.one()
        old = connection.exec_driver_sql(
            "SELECT id, budget, spent, sequence, head FROM heldout_accounts"
        ).all()
        names = {
            account: json.loads(body).get("name")
            for account, body in connection.exec_driver_sql(
                "SELECT account, body FROM heldout_entries ORDER BY sequence DESC"
            )
        }
        key = bytes.fromhex(secret)
        if place.make(ledger, key=key) != key:
            raise LedgerKeyError(
                f"Another key is where this ledger's key would go ('{place.file_of(ledger)}', or "
                "the environment). Move it away, and open the ledger again."
            )
        for table in (tables.ledger, tables.accounts):
            table.drop(connection)
        tables.metadata.create_all(connection, checkfirst=True)
        own_row = {"row": 1, "schema_version": SCHEMA_VERSION, "ledger": ledger, "closed": 0}
        end = {"key_check": check_of(key, ledger), "sequence": sequence, "head": head}
        connection.execute(tables.ledger.insert(), own_row | end)
        for account, budget, spent, last, hashed in old:
            state = canonical({"budget": json.loads(budget), "spent": json.loads(spent)})
            row = {"id": account, "kind": "rows", "name": names.get(account), "parent": None}
            at = {"state": state, "sequence": last, "head": hashed}
            connection.execute(tables.accounts.insert(), row | at)
        return True

    if storage.write(migrate):
        storage.wipe()
