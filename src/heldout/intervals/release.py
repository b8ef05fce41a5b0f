"""One answer, as people and machines read it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heldout.errors import ArgumentError
from heldout.intervals.measure import Exported, Interval, Measure
from heldout.kernel import Loss, Protection, Receipt, price
from heldout.kernel.door import Drawn

if TYPE_CHECKING:
    from heldout.drawing.chart import Figure
    from heldout.intervals.areas import Look


class Answer(Exported, ABC):
    """Measures, the first of which is the headline.

    It is what `float()`, `value`, `interval()` and `noise_interval()` speak of.
    """

    @property
    @abstractmethod
    def measures(self) -> dict[str, Measure]:
        """Return what can be read off this answer, by name, the headline first."""

    def surprise(self, name: str, value: float) -> float:
        """Return how often so far a number would be released if the population's were `value`.

        Two-sided, of the measure of this name, with sampling error and noise together.
        """
        raise ArgumentError(f"{name} has no test. Compare its intervals.")

    @property
    def headline(self) -> Measure:
        return next(iter(self.measures.values()))

    @property
    def value(self) -> float:
        return self.headline.value

    def __float__(self) -> float:
        return self.headline.value

    def interval(self, level: float = 0.95) -> Interval:
        return self.headline.interval(level)

    def noise_interval(self, level: float = 0.95) -> Interval:
        return self.headline.noise_interval(level)

    # In sums and comparisons, as in scikit-learn's scorers, an answer is its number.

    def __mul__(self, other: float) -> float:
        return self.value * other

    def __add__(self, other: float) -> float:
        return self.value + other

    def __sub__(self, other: float) -> float:
        return self.value - float(other)

    def __rsub__(self, other: float) -> float:
        return other - self.value

    __rmul__, __radd__ = __mul__, __add__

    def __lt__(self, other: float) -> bool:
        return self.value < float(other)

    def __gt__(self, other: float) -> bool:
        return self.value > float(other)

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __format__(self, specification: str) -> str:
        return format(self.value, specification) if specification else str(self)

    def __str__(self) -> str:
        return str(self.headline)

    def __repr__(self) -> str:
        return str(self)


class Release(Answer):
    """One answer, for people and for machines. Everything here is already paid for.

    A subclass turns what was drawn into measures.
    """

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn

    @property
    def name(self) -> str:
        return str(self._drawn.request.name)

    @property
    def kind(self) -> str:
        """The identifier of the question that it answers, the same everywhere."""
        return self._drawn.kind

    @property
    def loss(self) -> Loss:
        return price(self._drawn.request.event())

    @property
    def terms(self) -> str:
        """The price and who is protected, as the end of a sentence."""
        return self._drawn.terms

    @property
    def receipt(self) -> Receipt:
        assert self._drawn.receipt is not None
        return self._drawn.receipt

    @property
    def protection(self) -> Protection:
        protection: Protection = self._drawn.about.protection
        return protection

    @property
    def neighbours(self) -> str:
        return str(self.protection.neighbours)

    @property
    def mechanism(self) -> dict[str, object]:
        return dict(self._drawn.request.describe())

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what was asked for, as it was booked."""
        return dict(self._drawn.request.parameters)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON: everything that an analyst may see of this release."""
        drawn = self._drawn
        return {
            "kind": self.kind,
            "release": self.name,
            "value": self.value,
            "measures": {name: measure.as_dict(level) for name, measure in self.measures.items()},
            "noisy": self._noisy(),
            "loss": self.loss.as_dict(),
            "protection": self.protection.as_dict(),
            "rows": drawn.about.rows,
            "parameters": self.parameters,
            "mechanism": self.mechanism,
            "claim": drawn.request.claim,
            "receipt": {"sequence": self.receipt.sequence, "hash": self.receipt.hash},
        }

    def _noisy(self) -> object:
        """The noisy numbers as drawn, on the public lattice."""
        return self._drawn.values.tolist()

    def plotted(self) -> dict[str, Measure]:
        """Return the measures that a report draws side by side: from 0 to 1, higher is better."""
        return self.measures

    def class_counts(self) -> tuple["Look", ...]:
        """Return noisy numbers of positive and negative rows that others may use."""
        return ()

    def informed(self, beside: Mapping[str, "Release"]) -> "Release":
        """Return the same release, read with what was released beside it of the same rows. Free."""
        return self

    def figures(self, level: float = 0.95) -> list["Figure"]:
        """Pictures of its own, each with a caption."""
        return []

    def _lead(self) -> str:
        """Return what its card says first."""
        from heldout.drawing.words import spread

        value, interval, _ = spread(self.headline, 0.95)
        return f"{self.headline.name} {value} ({interval})"

    def _repr_html_(self) -> str:
        from heldout.drawing.page import measures_card

        return measures_card(
            self._lead(),
            self.measures,
            drawn=self.figures(),
            note=f"Paid: {self.terms}. Receipt {self.receipt.hash}.",
        )
