"""A secret bar that outlives a process: which submissions are above it."""

from dataclasses import dataclass
from typing import Any

from heldout.kernel.events import Event
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.sparse_vector import SparseVector, unbounded_noise
from heldout.kernel.sealed import Sealed

__all__ = ["AboveBar", "Prepaid", "secret_of"]


def secret_of(test: SparseVector) -> int:
    """The noise of the bar: drawn once, kept by the custodian, shown to nobody."""
    return unbounded_noise(test.threshold_scale, 1)[0]


@dataclass(frozen=True)
class AboveBar:
    """One query of a sparse vector whose bar was drawn, and paid for, before.

    Claim:       all queries of one bar together, until `limit` of them were above it, cost what
                 was booked for the bar, and nothing more.                      [claim: board]
    Neighbours:  those between which the query moves by at most the test's sensitivity.
    Sensitivity: the statistic's.
    Numerics:    exact, integers without an end.
    Refuses:     nothing; the board counts the answers, and stops at the limit.
    Reference:   Lyu, Su and Li 2017, Algorithm 1; proofs/board.md.
    Cost:        10 microseconds.
    """

    test: SparseVector
    threshold: int
    """What a submission must reach: a function of what the board has shown."""
    paid: int
    """The ledger's entry that paid for the bar."""
    secret: int

    def __repr__(self) -> str:
        return f"AboveBar(threshold={self.threshold}, paid={self.paid})"

    def event(self) -> Event:
        return Event("covered", {"entry": self.paid})

    def sample(self, sealed: Sealed[Any]) -> bool:
        total = int(unseal(sealed)[0])
        noise = unbounded_noise(self.test.query_scale, 1)[0]
        return total + noise >= self.threshold + self.secret

    def describe(self) -> dict[str, object]:
        return {**self.test.describe(), "name": "sparse vector with a kept bar"}


@dataclass(frozen=True)
class Prepaid:
    """Noise whose price an earlier entry of the ledger paid, such as that of a board's scores.

    Claim:       the noise's own; the board draws it for at most as many scores as were paid for.
                                                                                [claim: board]
    Neighbours:  the noise's.
    Sensitivity: the statistic's.
    Numerics:    exact.
    Refuses:     nothing; the board counts the scores.
    Reference:   proofs/board.md.
    Cost:        that of the noise.
    """

    noise: DiscreteLaplace
    paid: int
    """The ledger's entry that paid for it."""

    def event(self) -> Event:
        return Event("covered", {"entry": self.paid})

    def sample(self, sealed: Sealed[Any]) -> Any:
        return self.noise.sample(sealed)

    def describe(self) -> dict[str, object]:
        return self.noise.describe()
