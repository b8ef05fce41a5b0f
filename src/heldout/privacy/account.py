"""What a ledger gives out: accounts and receipts. Nothing in them is a function of rows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from heldout.privacy.loss import Budget, Loss

__all__ = ["Account", "Receipt"]


@dataclass(frozen=True)
class Account:
    """One data set's budget. The id is random; it says nothing about the rows."""

    id: str
    budget: Budget


@dataclass(frozen=True)
class Receipt:
    """Proof of a booking; keep the hash, and `Ledger.verify(receipt=hash)` finds it again.

    `loss` is the price of the event; `charge` is what the budget gave, in the budget's kind.
    """

    sequence: int
    hash: str
    loss: Loss
    charge: Loss
    account: str
    time: datetime

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "sequence": self.sequence,
            "hash": self.hash,
            "loss": self.loss.as_dict(),
            "charge": self.charge.as_dict(),
            "account": self.account,
            "time": self.time.isoformat(),
        }
