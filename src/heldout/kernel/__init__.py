"""The gate: neighbours, losses, exact budgets, events, the accountant and the ledger.

Importing it is light: only a ledger at a database URL loads SQLAlchemy.
"""

from heldout.kernel.accountant import compose, epsilon_of_zcdp, fits, remaining
from heldout.kernel.events import Event, price
from heldout.kernel.ledger.ledger import Account, Ledger, Receipt, Verification
from heldout.kernel.loss import Budget, Loss, exact, show
from heldout.kernel.neighbours import Neighbours, Protection

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
