"""What a noise law is: centred noise whose size depends on the rung of the data set."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from heldout.kernel.events import Event
from heldout.kernel.noise.bisection import falls_to
from heldout.kernel.noise.exact import LATTICE, Randomness, draw_on_lattice, rational
from heldout.kernel.noise.mechanism import Primitive
from heldout.kernel.ranking.sensitivity import RungSensitivity
from heldout.kernel.ranking.smooth_sensitivity import SmoothSensitivity

if TYPE_CHECKING:
    from flint import arb

__all__ = ["NoiseLaw", "ScaledNoise", "error_quantile", "mean_absolute_error", "symmetric"]


class NoiseLaw(Protocol):
    """Symmetric noise for a statistic whose local sensitivity is known by rung. All public."""

    @property
    def local(self) -> RungSensitivity:
        """The sensitivity that the noise is made for."""

    def event(self) -> Event:
        """What the ledger books."""

    def describe(self) -> dict[str, object]:
        """Name and public parameters."""

    def sample(
        self,
        value: Fraction,
        *,
        rung: int,
        lattice: Fraction = LATTICE,
        randomness: Randomness | None = None,
    ) -> int:
        """A multiple of the lattice: the value with exact noise, rounded."""

    def survival(self, rungs: Any, distance: Any) -> Any:
        """P(|noise| > distance) on each of the rungs, in doubles, for plans and intervals."""


@dataclass(frozen=True, kw_only=True)
class ScaledNoise(Primitive, ABC):
    """f + (S/a) Z, with S the beta-smooth sensitivity and Z of one fixed law."""

    local: RungSensitivity

    @property
    @abstractmethod
    def sharpness(self) -> Fraction:
        """The a of S/a."""

    @property
    @abstractmethod
    def smoothing(self) -> Fraction:
        """The beta that S is smooth for."""

    @abstractmethod
    def magnitude(self, tail: "arb") -> "arb":
        """The z >= 0 with P(|Z| > z) = tail; indeterminate if the tail is not known well enough."""

    @abstractmethod
    def tail(self, z: Any) -> Any:
        """P(|Z| > z) in doubles."""

    def sample(
        self,
        value: Fraction,
        *,
        rung: int,
        lattice: Fraction = LATTICE,
        randomness: Randomness | None = None,
    ) -> int:
        smooth = SmoothSensitivity(local=self.local, beta=self.smoothing, rung=rung)

        def real(uniform: "arb") -> "arb":
            scale = smooth.ball() / rational(self.sharpness)
            return rational(value) + scale * symmetric(uniform, self.magnitude)

        return draw_on_lattice(real, lattice=lattice, randomness=randomness)

    def scale(self, rung: int) -> float:
        """S/a near enough for plans and intervals."""
        smooth = SmoothSensitivity(local=self.local, beta=self.smoothing, rung=rung)
        return smooth.approximate() / float(self.sharpness)

    def survival(self, rungs: Any, distance: Any) -> Any:
        rungs, distance = np.broadcast_arrays(np.asarray(rungs), np.asarray(distance, dtype=float))
        whole, where = np.unique(np.floor(rungs).astype(np.int64), return_inverse=True)
        scales = np.array([self.scale(int(rung)) for rung in whole])[where.reshape(rungs.shape)]
        return self.tail(distance / scales)


def symmetric(uniform: "arb", magnitude: Callable[["arb"], "arb"]) -> "arb":
    """The quantile of a symmetric law from the magnitude's: one coin for the sign, by the half."""
    from flint import arb, fmpq

    half = arb(fmpq(1, 2))
    if uniform < half:
        return -magnitude(2 * uniform)
    if uniform > half:
        return magnitude(2 * (1 - uniform))
    return arb.nan()


def error_quantile(law: NoiseLaw, *, rung: int, level: float) -> float:
    """The t with P(|noise| <= t) = level for a data set on this rung."""
    return falls_to(lambda size: law.survival(rung, size), 1 - level, start=1e-12)


def mean_absolute_error(law: NoiseLaw, *, rung: int, cap: float = 1.0) -> float:
    """The expected size of the noise, where an error counts at most `cap`."""
    edges = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 4000)]) * cap
    tails = np.asarray(law.survival(np.full(edges.shape, rung), edges))
    return float(np.trapezoid(tails, edges))
