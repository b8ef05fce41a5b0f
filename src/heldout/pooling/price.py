"""What the sites paid, and what that means for one person."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from heldout.kernel import Loss

__all__ = ["Price"]

ASSUMES = "no person is in two sites"


@dataclass(frozen=True)
class Price:
    """The losses that the sites booked. Pooling reads no row and adds nothing to them."""

    losses: Mapping[str, Loss]

    @property
    def one_site(self) -> Loss | None:
        """For people who are in one site each: the largest loss (parallel composition)."""
        return self._together(max)

    @property
    def every_site(self) -> Loss | None:
        """For somebody who is in every site: the sum of the losses."""
        return self._together(sum)

    def _together(self, fold: Any) -> Loss | None:
        """None where one site speaks of epsilon and another of rho."""
        losses = list(self.losses.values())
        epsilons = [each.epsilon for each in losses]
        rhos = [each.rho for each in losses]
        delta = min(fold([each.delta for each in losses]), Fraction(1))
        if None not in epsilons:
            return Loss(fold(epsilons), None, delta)
        return Loss(None, fold(rhos), delta) if None not in rhos else None

    def __add__(self, other: "Price") -> "Price":
        """Both were paid."""
        both = {
            name: Price({"a": self.losses[name], "b": other.losses[name]}) for name in self.losses
        }
        return Price({name: each.every_site or self.losses[name] for name, each in both.items()})

    def __str__(self) -> str:
        if self.one_site is None or self.every_site is None:
            return "each site's own loss: " + "; ".join(map(str, self.losses.values()))
        return f"{self.one_site} if {ASSUMES}, {self.every_site} for somebody who is in all of them"

    def as_dict(self) -> dict[str, Any]:
        one, every = self.one_site, self.every_site
        return {
            "sites": {name: loss.as_dict() for name, loss in self.losses.items()},
            "one_site": None if one is None else one.as_dict(),
            "one_site_assumes": ASSUMES,
            "every_site": None if every is None else every.as_dict(),
        }
