"""The gate: neighbours, losses, exact budgets, events, the accountant and the ledger.

No row and no noise in this room. Importing it is light; only opening a ledger loads SQLAlchemy.
"""

from heldout.privacy.accountant import compose, epsilon_of_zcdp, fits, remaining
from heldout.privacy.events import Event, price
from heldout.privacy.ledger import Account, Ledger, Receipt, Verification
from heldout.privacy.loss import Budget, Loss
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.privacy.rational import exact, show

__all__ = [
    "Account",
    "Budget",
    "Event",
    "Ledger",
    "Loss",
    "Neighbours",
    "Protection",
    "Receipt",
    "Verification",
    "compose",
    "epsilon_of_zcdp",
    "exact",
    "fits",
    "price",
    "remaining",
    "show",
]
