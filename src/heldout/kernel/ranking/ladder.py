"""The ladder: a public table of noise scales by rung, certified in ball arithmetic."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.exact import LATTICE, double, draw_on_lattice, rational, working_precision
from heldout.kernel.noise.mechanism import Primitive
from heldout.kernel.noise.source import Randomness
from heldout.kernel.ranking.sensitivity import RungSensitivity, SmoothSensitivity

if TYPE_CHECKING:
    from flint import arb

_SINGLE: Final = 256  # rungs with a step of their own; above, a step spans 1/128 of its rung
_SPAN: Final = 128
_MARGIN: Final = 1 + 2.0**-24  # the table must pass an exact test; this is the slack it gets
_NEAR: Final = 2.0**-16  # a step of Newton from so near the scale ends within 2^-30 of it
_PRECISION: Final = 192


@dataclass(frozen=True)
class Ladder:
    """Noise scales s(r) that fall with the rung r, constant from each start to the next.

    With q = exp(-epsilon), let N(r) = s(r) + q s(r-1) + q^2 s(r-2) + ... (s(0) below rung 0). The
    table is `certified` if, for every rung r >= 1 with local sensitivity L(r):

    - L(r) <= s(r) <= s(r-1), and
    - N(r-1) * (exp(epsilon L(r)/s(r-1)) - 1) * q <= s(r).

    That is what the proof of `PiecewiseLaplace` needs, and all of it.
    """

    epsilon: Fraction
    local: RungSensitivity
    starts: tuple[int, ...]
    scales: tuple[float, ...]  # doubles are exact rationals here, and public

    def step(self, rung: int) -> int:
        """The index of the step that a rung stands on."""
        return int(np.searchsorted(self._starts, max(rung, 0), side="right")) - 1

    @cached_property
    def _starts(self) -> Ints:
        return np.array(self.starts, dtype=np.int64)

    def exact_height(self, step: int) -> Fraction:
        """s(1) + ... + s(start - 1) for a step's start (0 for the first), exactly."""
        heights, unit = self._whole_heights
        return Fraction(heights[step], unit)

    @cached_property
    def _whole_heights(self) -> tuple[list[int], int]:
        """The heights of all steps as whole numbers, and how many of those make 1."""
        ratios = [scale.as_integer_ratio() for scale in self.scales]
        unit = max(below for _, below in ratios)  # powers of two: the largest holds the others
        heights = [0]
        for i in range(1, len(self.starts)):
            length = self.starts[i] - max(self.starts[i - 1], 1)
            above, below = ratios[i - 1]
            heights.append(heights[-1] + length * above * (unit // below))
        return heights, unit

    @cached_property
    def _by_precision(self) -> dict[int, list["arb"]]:
        return {}

    def normalisers(self, precision: int = _PRECISION) -> list["arb"]:
        """N(start - 1) for each step, as balls; N(0) for the first step by convention."""
        precision = max(precision, _PRECISION)
        if precision not in self._by_precision:
            self._by_precision[precision] = self._normalisers(precision)
        return self._by_precision[precision]

    def _normalisers(self, precision: int) -> list["arb"]:
        with working_precision(precision):
            q = (-rational(self.epsilon)).exp()
            sums = [double(self.scales[0]) / (1 - q)]
            for i in range(1, len(self.starts)):
                length = self.starts[i] - max(self.starts[i - 1], 1)
                limit = double(self.scales[i - 1]) / (1 - q)
                sums.append(limit + q**length * (sums[-1] - limit))
            return sums

    def certify(self) -> bool:
        """Return whether the conditions hold for every rung; decided in ball arithmetic.

        Within a step s is constant, L falls and N falls, so its first two rungs decide.
        """
        normalisers = self.normalisers()
        with working_precision(_PRECISION):
            epsilon = rational(self.epsilon)
            q = (-epsilon).exp()
            local = [double(self.local.upper(start)) for start in self.starts]
            scales = [double(scale) for scale in self.scales]
            for i in range(1, len(self.starts)):
                before, scale, bound, above = scales[i - 1], scales[i], local[i], normalisers[i]
                if not bound <= scale <= before:
                    return False
                if not above * (epsilon * bound / before).expm1() * q <= scale:
                    return False
                here = scale + q * above
                if not here * (epsilon * bound / scale).expm1() * q <= scale:
                    return False
            return bool(self.starts[:2] == (0, 1) and local[0] <= scales[0])

    # --- floats, for plans and intervals only ----------------------------------------------------

    @cached_property
    def log_normalisers(self) -> Floats:
        """ln N(start - 1) for each step, approximately."""
        result: Floats = np.log(self._floats[2])
        return result

    @cached_property
    def _floats(self) -> tuple[Any, Any, Any]:
        whole, unit = self._whole_heights
        heights = np.array([height / unit for height in whole])
        with working_precision(_PRECISION):
            normalisers = np.array([float(ball.mid()) for ball in self.normalisers()])
        return heights, np.array(self.scales), normalisers

    def survival(self, rungs: Floats, distance: Floats) -> Floats:
        """P(|noise| > distance) for data sets on the given rungs, to double precision."""
        score, here, there = self._climb(rungs, distance)
        result: Floats = np.exp(-float(self.epsilon) * score) * there / here
        return result

    def log_density(self, rungs: Floats, distance: Floats) -> Floats:
        """The logarithm of the noise's density at this distance, to double precision."""
        score, here, _ = self._climb(rungs, distance)
        epsilon = float(self.epsilon)
        result: Floats = -epsilon * score - np.log(here * -2 * math.expm1(-epsilon) / epsilon)
        return result

    def _climb(self, rungs: Any, distance: Any) -> tuple[Any, Any, Any]:
        """Return how many rungs lie within the distance, and N at the two ends."""
        heights, scales, _ = self._floats
        rungs = np.maximum(np.asarray(rungs, dtype=float), 0.0)
        step = np.searchsorted(self._starts, rungs, side="right") - 1
        top = heights[step] + (rungs - np.maximum(self._starts[step], 1) + 1) * scales[step]
        top = np.where(step == 0, 0.0, top)
        here = self._normaliser(step, rungs)
        target = top - distance  # the height that is reached after climbing down
        lower = np.searchsorted(heights[1:], target, side="right")
        base = np.maximum(self._starts[lower], 1) - 1
        place = np.where(
            lower == 0, target / scales[0], base + (target - heights[lower]) / scales[lower]
        )
        there = self._normaliser(lower, place)
        return rungs - place, here, there

    def _normaliser(self, step: Floats, place: Floats) -> Floats:
        """N at a real place on a step: the integral of what lies below it."""
        _, scales, normalisers = self._floats
        epsilon = float(self.epsilon)
        limit = scales[step] / -math.expm1(-epsilon)
        walked = place - (np.maximum(self._starts[step], 1) - 1)
        value = limit + np.exp(-epsilon * np.maximum(walked, 0)) * (normalisers[step] - limit)
        result: Floats = np.where(step == 0, limit, value)
        return result


@lru_cache(maxsize=256)
def build(epsilon: Fraction, local: RungSensitivity, top: int) -> Ladder:
    """The lowest certified ladder that this recursion finds; `top` is where it stops falling.

    Public and deterministic: it depends on epsilon, on the sensitivity bound and on `top` only.
    """
    starts = _starts(top)
    ladder = Ladder(epsilon, local, tuple(starts), tuple(_scales(float(epsilon), local, starts)))
    if not ladder.certify():
        raise ArithmeticError("the ladder failed its exact test; please report this epsilon")
    return ladder


def _starts(top: int) -> list[int]:
    starts = list(range(min(_SINGLE, top) + 1))
    while starts[-1] < top:
        starts.append(starts[-1] + max(1, starts[-1] // _SPAN))
    return starts


def _scales(epsilon: float, local: RungSensitivity, starts: Sequence[int]) -> list[float]:
    q = math.exp(-epsilon)
    limit_of = 1 / -math.expm1(-epsilon)
    before = local.upper(0) * _MARGIN
    above = before * limit_of  # N(start - 1)
    scales = [before]
    for i, start in enumerate(starts[1:], 1):
        bound = local.upper(start)
        least = max(bound, above * math.expm1(epsilon * bound / before) * q)
        scale = min(before, max(least, _stays(above, bound, before, epsilon, q)) * _MARGIN)
        scales.append(scale)
        if i + 1 < len(starts):
            length = starts[i + 1] - start
            limit = scale * limit_of
            above = limit + math.exp(-epsilon * length) * (above - limit)
            before = scale
    return scales


def _stays(above: float, bound: float, before: float, epsilon: float, q: float) -> float:
    """The least scale that the next rung could keep: (s + q N) (exp(epsilon L/s) - 1) q = s.

    By Newton's steps in logarithms, from the scale before; what it misses is less than the slack.
    """
    scale = before
    for _ in range(60):
        ratio = epsilon * bound / scale
        grown = math.expm1(ratio)
        excess = math.log((scale + q * above) * grown * q / scale)
        if excess <= 0 and scale == bound:
            break
        slope = scale / (scale + q * above) - 1 - ratio * (1 + 1 / grown)
        scale = max(bound, scale * math.exp(-excess / slope))
        if abs(excess) <= _NEAR:
            break
    return scale


# --- Piecewise Laplace noise at a certified ladder of local sensitivities. The default -----------


@dataclass(frozen=True, kw_only=True)
class PiecewiseLaplace(Primitive):
    """Laplace noise whose scale is the local sensitivity, and grows outwards by the rungs.

    The score of a distance z on rung r is how many rungs one must climb down to move the value so
    far: it rises by one over the first s(r), by one over the next s(r-1), and so on. The density
    is proportional to exp(-epsilon * score). Neighbours' scores differ by at most one, and the
    ladder s is chosen, and certified in exact arithmetic, so that the normaliser takes no more
    than what the score leaves of epsilon. So there is no second half of epsilon to pay, and no
    parameter to choose.

    Claim:       pure DP, epsilon.                                     [claim: piecewise-laplace]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: by rung; neighbours stand on the same or on adjacent rungs.
    Numerics:    exact, see `draw_on_lattice`; the table's doubles are exact public numbers.
    Refuses:     an epsilon outside [1/10000, 100].
    Reference:   proofs/piecewise-laplace.md; the shape is Durfee 2025 ("Unifying Laplace mechanism
                 with instance optimality"), whose proof leaves half of epsilon unused.
    Cost:        20 to 60 ms once for an epsilon; then about 0.1 ms a draw.

    >>> from heldout.kernel import price
    >>> from heldout.kernel.neighbours import Protection
    >>> from heldout.kernel.ranking.sensitivity import AreaSensitivity
    >>> local = AreaSensitivity(protection=Protection(neighbours="replace-one"))
    >>> noise = PiecewiseLaplace(epsilon=Fraction(1, 2), local=local, top=2**11)
    >>> print(price(noise.event()))
    epsilon 0.5
    """

    rule = ("piecewise-laplace", "epsilon")
    epsilon: Fraction
    local: RungSensitivity
    top: int

    def __post_init__(self) -> None:
        if not Fraction(1, 10_000) <= self.epsilon <= 100:
            raise ArgumentError(
                f"epsilon must lie between 1/10000 and 100, got {self.epsilon}. Pass another one."
            )

    @cached_property
    def ladder(self) -> Ladder:
        return build(self.epsilon, self.local, self.top)

    def describe(self) -> dict[str, object]:
        return {"name": "piecewise Laplace", "epsilon": str(self.epsilon), "top": self.top}

    def sample(
        self,
        value: Fraction,
        *,
        rung: int,
        lattice: Fraction = LATTICE,
        randomness: Randomness | None = None,
    ) -> int:
        def real(uniform: "arb") -> "arb":
            return rational(value) + symmetric(uniform, lambda tail: self._magnitude(tail, rung))

        return draw_on_lattice(real, lattice=lattice, randomness=randomness)

    def survival(self, rungs: Any, distance: Any) -> Floats:
        return self.ladder.survival(rungs, distance)

    def _magnitude(self, tail: "arb", rung: int) -> "arb":
        """The z with P(|noise| > z) = tail: find the step, then invert on it."""
        from flint import arb, ctx

        ladder = self.ladder
        below = ladder.normalisers(ctx.prec)
        epsilon = rational(self.epsilon)
        top = ladder.step(rung)
        rest = tail * self._mass(top, rung, below, epsilon)
        step = self._guess(tail, rung, top)
        while step < top and rest > self._left(step + 1, rung, below, epsilon):
            step += 1
        while step > 0 and rest < self._left(step, rung, below, epsilon):
            step -= 1
        if (step < top and not rest < self._left(step + 1, rung, below, epsilon)) or (
            step > 0 and not rest > self._left(step, rung, below, epsilon)
        ):
            return arb.nan()  # astride a border, as far as is known: more bits, please
        scale = rational(Fraction(ladder.scales[step]))
        limit = scale / -(-epsilon).expm1()
        place = max(ladder.starts[step], 1) - 1
        grown = (rest * (epsilon * (rung - place)).exp() - (below[step] - limit)) / limit
        climbed = scale * (grown.log() / epsilon)
        height = self._height(top, rung) - ladder.exact_height(step)
        return rational(height) - climbed

    def _mass(self, step: int, rung: int, below: list["arb"], epsilon: "arb") -> "arb":
        """N at the data set's own rung."""
        if step == 0:
            return below[0]
        limit = rational(Fraction(self.ladder.scales[step])) / -(-epsilon).expm1()
        walked = rung - self.ladder.starts[step] + 1
        return limit + (-epsilon * walked).exp() * (below[step] - limit)

    def _left(self, step: int, rung: int, below: list["arb"], epsilon: "arb") -> "arb":
        """The mass that lies beyond the lower end of a step."""
        return (-epsilon * (rung - max(self.ladder.starts[step], 1) + 1)).exp() * below[step]

    def _height(self, step: int, rung: int) -> Fraction:
        if step == 0:
            return Fraction(0)
        walked = rung - self.ladder.starts[step] + 1
        return self.ladder.exact_height(step) + walked * Fraction(self.ladder.scales[step])

    def _guess(self, tail: "arb", rung: int, top: int) -> int:
        """Return where to begin the search; a wrong guess costs time and nothing else."""
        size = float(tail.mid())
        if size <= 0:
            return 0
        logs = self.ladder.log_normalisers[: top + 1]
        places = np.maximum(np.array(self.ladder.starts[: top + 1]), 1) - 1
        left = -float(self.epsilon) * (rung - places) + logs
        wanted = np.log(size) + logs[top]
        return int(np.clip(np.searchsorted(left, wanted, side="right") - 1, 0, top))


# --- What a noise law is: centred noise whose size depends on the rung of the data set -----------


class NoiseLaw(Protocol):
    """Symmetric noise for a statistic whose local sensitivity is known by rung. All public."""

    @property
    def local(self) -> RungSensitivity:
        """The sensitivity that the noise is made for."""

    def event(self) -> Event:
        """Return what the ledger books."""

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

    def survival(self, rungs: Any, distance: Any) -> Floats:
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
    def tail(self, z: Any) -> Floats:
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

    def survival(self, rungs: Any, distance: Any) -> Floats:
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


# --- Laplace noise with a polynomial tail, for smooth sensitivity --------------------------------


@dataclass(frozen=True, kw_only=True)
class PolynomialTail(ScaledNoise):
    """f + (S/a) Z: the density of Z falls as exp(-|z|) up to nu, and as |z|^-nu beyond.

    Claim:       pure DP, epsilon = a + max(1, nu - 1) * beta.  [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: S is beta-smooth and never below the local sensitivity.
    Numerics:    exact, see `draw_on_lattice`.
    Refuses:     a or beta that is not positive, nu of 1 or less.
    Reference:   Hladik and Tetek 2025, "Smooth sensitivity revisited"; MATH section 3.
    Cost:        about 0.05 ms a draw.

    >>> from heldout.kernel import price
    >>> from heldout.kernel.neighbours import Protection
    >>> from heldout.kernel.ranking.sensitivity import AreaSensitivity
    >>> local = AreaSensitivity(protection=Protection(neighbours="replace-one"))
    >>> tail = PolynomialTail(local=local, a=Fraction(3, 5), beta=Fraction(1, 10), nu=Fraction(5))
    >>> print(price(tail.event()))
    epsilon 1
    """

    rule = ("smooth-polynomial-tail", "a", "beta", "nu")
    a: Fraction
    beta: Fraction
    nu: Fraction

    def __post_init__(self) -> None:
        if self.a <= 0 or self.beta <= 0 or self.nu <= 1:
            raise ArgumentError(
                f"a and beta must be positive and nu more than 1, got a = {self.a}, "
                f"beta = {self.beta}, nu = {self.nu}. See choose_polynomial_tail."
            )

    @property
    def sharpness(self) -> Fraction:
        return self.a

    @property
    def smoothing(self) -> Fraction:
        return self.beta

    def describe(self) -> dict[str, object]:
        parameters = {"a": str(self.a), "beta": str(self.beta), "nu": str(self.nu)}
        return {"name": "polynomial tail", **parameters}

    def magnitude(self, tail: "arb") -> "arb":
        from flint import arb

        nu = rational(self.nu)
        corner = (-nu).exp()
        lift = corner / (nu - 1)  # the core's tail is exp(-z) + lift, over 1 + lift
        mass = tail * (1 + lift)
        border = corner + lift
        if mass > border:
            return -(mass - lift).log()
        if mass < border:
            return nu * ((border / mass).log() / (nu - 1)).exp()
        return arb.nan()

    def tail(self, z: Floats) -> Floats:
        nu = float(self.nu)
        lift = math.exp(-nu) / (nu - 1)
        far = np.maximum(z, nu)
        core = np.exp(-np.minimum(z, nu)) + lift
        beyond = lift * nu * (far / nu) ** (1 - nu)
        return np.where(np.asarray(z) <= nu, core, beyond) / (1 + lift)

    def log_density(self, z: Floats) -> Floats:
        """The logarithm of the density of Z, in doubles."""
        nu = float(self.nu)
        size = np.abs(z)
        shape = np.where(size <= nu, -size, -nu - nu * np.log(np.maximum(size, nu) / nu))
        return shape - math.log(2 * (1 + math.exp(-nu) / (nu - 1)))


# --- Cauchy and Laplace noise for smooth sensitivity: with tight constants, and as published -----


@dataclass(frozen=True, kw_only=True)
class _CauchyShape(ScaledNoise):
    """Z is standard Cauchy."""

    def magnitude(self, tail: "arb") -> "arb":
        return (tail / 2).cot_pi()

    def tail(self, z: Floats) -> Floats:
        return 1 - np.arctan(z) * 2 / np.pi

    def log_density(self, z: Floats) -> Floats:
        """The logarithm of the density of Z, in doubles."""
        result: Floats = -np.log(np.pi) - np.log1p(np.square(z))
        return result


@dataclass(frozen=True, kw_only=True)
class Cauchy(_CauchyShape):
    """f + (S/a) Z with standard Cauchy Z and the constants that the proof needs.

    Claim:       pure DP, epsilon = a + beta.                   [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: S is beta-smooth and never below the local sensitivity.
    Numerics:    exact, see `draw_on_lattice`.
    Refuses:     a or beta that is not positive.
    Reference:   Nissim, Raskhodnikova and Smith 2007, with both constants worked out; MATH 3.
    Cost:        about 0.05 ms a draw.
    """

    rule = ("smooth-cauchy", "a", "beta")
    a: Fraction
    beta: Fraction

    def __post_init__(self) -> None:
        if self.a <= 0 or self.beta <= 0:
            raise ArgumentError(
                f"a and beta must be positive, got a = {self.a}, beta = {self.beta}. "
                "Half of epsilon each is a good start."
            )

    @property
    def sharpness(self) -> Fraction:
        return self.a

    @property
    def smoothing(self) -> Fraction:
        return self.beta

    def describe(self) -> dict[str, object]:
        return {"name": "Cauchy", "a": str(self.a), "beta": str(self.beta)}


@dataclass(frozen=True, kw_only=True)
class CauchyBoyd2015(_CauchyShape):
    """f + (6 S/epsilon) Z with beta = epsilon/6, exactly as the 2015 paper states it.

    Claim:       pure DP, epsilon (a third of it would be true).
                                                                [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: S is beta-smooth and never below the local sensitivity.
    Numerics:    exact, see `draw_on_lattice`.
    Refuses:     an epsilon that is not positive.
    Reference:   Boyd, Lantz and Page 2015, theorem 2.1 with gamma = 2.
    Cost:        about 0.05 ms a draw.
    """

    rule = ("smooth-cauchy-2015", "epsilon")
    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError(f"epsilon must be positive, got {self.epsilon}. Try '1'.")

    @property
    def sharpness(self) -> Fraction:
        return self.epsilon / 6

    @property
    def smoothing(self) -> Fraction:
        return self.epsilon / 6

    def describe(self) -> dict[str, object]:
        return {"name": "Cauchy as in Boyd et al. 2015", "epsilon": str(self.epsilon)}


@dataclass(frozen=True, kw_only=True)
class LaplaceBoyd2015(ScaledNoise):
    """f + (2 S/epsilon) Z with Laplace Z and beta = epsilon/(2 ln(2/delta)), as published.

    Claim:       (epsilon, delta)-DP.                           [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: S is beta-smooth and never below the local sensitivity.
    Numerics:    exact, see `draw_on_lattice`; beta is a public rational just below the published
                 irrational number, which is on the safe side.
    Refuses:     an epsilon that is not positive; a delta outside (0, 1/2]; an epsilon too large for
                 the published proof, (exp(beta) - 1 - beta) epsilon > 2 beta^2: about 3.
    Reference:   Boyd, Lantz and Page 2015, theorem 2.2; Nissim et al. 2007, corollary 2.4.
    Cost:        about 0.05 ms a draw.
    """

    rule = ("smooth-laplace-2015", "epsilon", "delta")
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or not 0 < self.delta <= Fraction(1, 2):
            raise ArgumentError(
                f"epsilon must be positive and delta between 0 and 1/2, got {self.epsilon} "
                f"and {self.delta}. Try epsilon '1' and delta '1e-6'."
            )
        with working_precision(128):
            beta = rational(self.smoothing)
            holds = (beta.expm1() - beta) * rational(self.epsilon) <= 2 * beta * beta
        if not holds:
            raise ArgumentError(
                f"epsilon must be small enough for the proof of 2015, got {self.epsilon}. "
                "Use at most 3, or the default method."
            )

    @property
    def sharpness(self) -> Fraction:
        return self.epsilon / 2

    @property
    def smoothing(self) -> Fraction:
        with working_precision(128):
            beta = rational(self.epsilon) / (2 * rational(2 / self.delta).log())
            units = (beta * 2**64).lower().floor().unique_fmpz()
        return Fraction(int(units), 2**64)

    def describe(self) -> dict[str, object]:
        name = "Laplace as in Boyd et al. 2015"
        return {"name": name, "epsilon": str(self.epsilon), "delta": str(self.delta)}

    def magnitude(self, tail: "arb") -> "arb":
        return -tail.log()

    def tail(self, z: Floats) -> Floats:
        result: Floats = np.exp(-np.asarray(z, dtype=float))
        return result
