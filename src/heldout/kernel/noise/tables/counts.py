"""How the counts of one class get their noise, when the bins are public."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.tables.table import laplace_deviation
from heldout.kernel.sealed import Sealed

__all__ = ["BinCounts", "ClassCounts", "Cumulative", "Flat", "LinearCounts"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassCounts:
    """Noisy counts of one class and what is public about their noise."""

    counts: Floats
    bin_deviation: Floats
    above_deviation: Floats
    scale: Fraction | None = None
    unbiased: bool = True


@dataclass(frozen=True, kw_only=True)
class BinCounts(ABC):
    """Noise for the counts of one class in at most `bins` bins.

    `epsilon` is what the class may lose when `moved` rows, leaving and arriving together, tell
    neighbours apart. Two classes drawn so lose `2 epsilon` if it is charged by class, and
    `epsilon` if it is charged by row; proofs/joint-table.md.
    """

    name: ClassVar[str]
    bins: int
    epsilon: Fraction
    moved: int

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.bins < 1 or self.moved < 1:
            raise ArgumentError("epsilon, bins and rows moved must be positive.")

    @abstractmethod
    def events(self, *, classes: int) -> tuple[Event, ...]:
        """What is booked for one class, or for both of a joint table."""

    @abstractmethod
    def draw(self, exact: Ints) -> ClassCounts:
        """Noisy counts from exact ones, one or more and at most `bins` of them."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """Public parameters."""


@dataclass(frozen=True, kw_only=True)
class LinearCounts(BinCounts):
    """Whole-numbered linear queries, discrete Laplace of one scale on each, and a fit to them.

    A row is in one bin, and a bin has the weights of its column; `weight` is the largest L1 norm
    of a column, so the answers move by at most `moved * weight`.
    """

    @property
    @abstractmethod
    def weight(self) -> int:
        """The largest L1 norm of a column of the queries."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many queries there are for `bins` bins."""

    @abstractmethod
    def queries(self, exact: Ints) -> Ints:
        """Exact whole-numbered answers."""

    @abstractmethod
    def solve(self, answers: Ints, *, bins: int) -> Floats:
        """Counts by bin from noisy answers."""

    @abstractmethod
    def deviations(self, *, bins: int) -> tuple[Floats, Floats]:
        """For answers with noise of deviation 1: that of each bin and of all above each edge."""

    @property
    def scale(self) -> Fraction:
        return self.moved * self.weight / self.epsilon

    def events(self, *, classes: int) -> tuple[Event, ...]:
        mechanism = DiscreteLaplace(
            scale=self.scale,
            l1_sensitivity=self.moved * self.weight,
            dimension=classes * self.dimension,
        )
        return (mechanism.event(),)

    def draw(self, exact: Ints) -> ClassCounts:
        bins = len(exact)
        answers = self.queries(np.asarray(exact, dtype=np.int64))
        noisy = DiscreteLaplace(
            scale=self.scale, l1_sensitivity=self.moved * self.weight, dimension=len(answers)
        ).sample(Sealed(answers))
        one = laplace_deviation(self.scale)
        bin_deviation, above_deviation = self.deviations(bins=bins)
        return ClassCounts(
            counts=self.solve(noisy, bins=bins),
            bin_deviation=one * bin_deviation,
            above_deviation=one * above_deviation,
            scale=self.scale if self.weight == 1 else None,
        )

    def describe(self) -> dict[str, object]:
        return {"counts": self.name, "scale": str(self.scale), "queries": self.dimension}


@dataclass(frozen=True, kw_only=True)
class Flat(LinearCounts):
    """One noisy count a bin.

    Claim:       pure DP, epsilon, for one class.                        [claim: joint-table]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in one bin, so `moved` rows move the counts by `moved` in all.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, histograms.
    Cost:        8 microseconds a bin.

    >>> Flat(bins=8, epsilon=Fraction(1, 2), moved=2).scale
    Fraction(4, 1)
    """

    name: ClassVar[str] = "flat"

    @property
    def weight(self) -> int:
        return 1

    @property
    def dimension(self) -> int:
        return self.bins

    def queries(self, exact: Ints) -> Ints:
        return exact

    def solve(self, answers: Ints, *, bins: int) -> Floats:
        return answers.astype(np.float64)

    def deviations(self, *, bins: int) -> tuple[Floats, Floats]:
        return np.ones(bins), np.sqrt(np.arange(bins, -1, -1.0))


@dataclass(frozen=True, kw_only=True)
class Cumulative(LinearCounts):
    """A noisy count of the rows above each threshold, and of all rows.

    Claim:       pure DP, epsilon, for one class.                        [claim: joint-table]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row of the highest bin is in each of the `bins` counts.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive.
    Reference:   the Laplace baseline of Stoddard, Chen and Machanavajjhala 2014, section 4.2. They
                 take sensitivity 2t + 1 for t thresholds; a row is in one class, so that t + 1 is
                 enough for add-remove, and 2t + 2 for replace-one.
    Cost:        8 microseconds a bin.

    >>> Cumulative(bins=11, epsilon=Fraction(1), moved=2).scale
    Fraction(22, 1)
    """

    name: ClassVar[str] = "cumulative"

    @property
    def weight(self) -> int:
        return self.bins

    @property
    def dimension(self) -> int:
        return self.bins

    def queries(self, exact: Ints) -> Ints:
        return np.cumsum(exact[::-1])[::-1]

    def solve(self, answers: Ints, *, bins: int) -> Floats:
        return -np.diff(answers.astype(np.float64), append=0.0)

    def deviations(self, *, bins: int) -> tuple[Floats, Floats]:
        each = np.full(bins, np.sqrt(2.0))
        each[-1] = 1.0
        return each, np.append(np.ones(bins), 0.0)
