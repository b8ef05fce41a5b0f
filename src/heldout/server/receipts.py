"""The newest booking that this server has a receipt for, kept apart from ledger and witness.

A ledger that is put back together with its witness has a perfect chain. The server's own tables
know better: beside the answers they keep the newest receipt.
"""

from typing import Any

import sqlalchemy as sa

from heldout.errors import LedgerTampered
from heldout.kernel.ledger.witness import Witness
from heldout.server.service import Service
from heldout.server.storage import receipts

__all__ = ["check", "note"]

NEWEST = "newest"


def note(connection: sa.Connection, receipt: Witness) -> None:
    """Keep a receipt, unless a newer one is known."""
    values: dict[str, Any] = dict(vars(receipt))
    known = connection.execute(sa.select(receipts.c.sequence)).scalar()
    if known is None:
        connection.execute(receipts.insert(), {"place": NEWEST} | values)
    elif known < receipt.sequence:
        connection.execute(receipts.update().values(values))


def check(service: Service) -> None:
    """Refuse a ledger that lacks the newest booking that this server has a receipt for.

    The ledger remembers what it was asked for, so a booking that follows looks again in its own
    transaction. One row of either is read, however long the ledger is.
    """
    with service.store.read() as connection:
        row = connection.execute(sa.select(receipts)).first()
    if row is None:
        return
    try:
        service.ledger.expect(Witness(row.ledger, row.sequence, row.hash))
    except LedgerTampered as error:
        refusal = LedgerTampered(
            f"The ledger was put back to an older copy, or replaced: this server has a receipt for "
            f"its entry {row.sequence}, and the ledger does not have that entry. Nothing was "
            "charged, and nothing will be until the custodian restores the newest copy."
        )
        refusal.sequence = row.sequence
        raise refusal from error
