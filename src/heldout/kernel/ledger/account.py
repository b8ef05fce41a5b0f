"""What a ledger gives out: accounts and receipts. Nothing in them is a function of rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from heldout.errors import ArgumentError
from heldout.kernel.loss import Budget, Loss

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
    standing: tuple[Budget, Loss, Loss] | None = field(default=None, repr=False, compare=False)
    """Budget, spent and remaining right after, where the booking was made; no part of the proof."""

    def __getstate__(self) -> dict[str, Any]:
        # Whoever is shown the proof need not learn what the account has left.
        return self.__dict__ | {"standing": None}

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

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `as_dict` wrote."""
        try:
            found = cls(
                **dict(content)
                | {
                    "loss": Loss.from_dict(content["loss"]),
                    "charge": Loss.from_dict(content["charge"]),
                    "time": datetime.fromisoformat(content["time"]),
                }
            )
            if found.as_dict() != dict(content) or type(found.sequence) is not int:
                raise ValueError
            if not isinstance(found.hash, str) or not isinstance(found.account, str):
                raise ValueError
        except Exception:
            raise ArgumentError("A receipt must be what Receipt.as_dict() gives.") from None
        return found
