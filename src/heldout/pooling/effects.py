"""Meta-analysis of one share, such as an area, that several sites estimate with known errors.

On the logit scale, along its tangent at the sites' mean: noise is added to shares, so a noisy value
beyond 0 or 1 stays an unbiased estimate instead of becoming an infinity.

Fixed effect: weights by precision; the interval is that of the Laplace noises and the sampling
errors themselves, and covers the so weighted mean of these sites. Random effects: the interval of
Hartung and Knapp (2001) covers the mean share of the sites that these stand for. Its weights take
the variance between sites at the upper end of a 90% bound (Viechtbauer 2007) instead of DerSimonian
and Laird's estimate (1986), which is the one reported: where noise makes the sites' errors very
unequal the estimate is often 0, one site gets all the weight, and intervals cover 90% instead of
95% (benchmarks/pooling.py). The prediction interval covers one more such site. It takes the
variance between sites over its confidence distribution, as Nagashima, Noma and Furukawa (2019) do,
and of that the larger half: over all of it such intervals covered as little as 89%, and with the
estimate in its place 84%.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.intervals.measure import Interval
from heldout.intervals.noise import NoiseSum
from heldout.kernel.noise.exact import halved

Vector = NDArray[np.float64]
CAUTION = 0.9  # of the bound on the variance between sites
LEAST = 0.5  # of the confidence distribution of the variance between sites: its larger half
RANKS = 24  # of the laws that are mixed in a prediction
NEAREST = 0.005  # of the mean to an end


@dataclass(frozen=True, eq=False)
class Effects:
    """Shares of sites, the scales of their Laplace noises and the deviations of their samples.

    >>> two = Effects(np.array([.80, .84]), np.array([.01, .01]), np.array([.02, .02]))
    >>> round(two.fixed, 3), [round(end, 3) for end in two.fixed_interval(0.95)]
    (0.819, [0.782, 0.851])
    """

    shares: Vector
    scales: Vector
    deviations: Vector

    @cached_property
    def _variances(self) -> Vector:
        """Return what weights go by: sampling variances as they would be at one common share.

        A sample that happens to be high states too small an error. Weights by stated errors would
        follow such accidents, and pull the mean towards 0 or 1.
        """
        noise, sampling = 2 * self.scales**2, self.deviations**2
        common = _inside(np.average(self.shares, weights=1 / (noise + sampling)), NEAREST)
        own = _inside(self.shares, 4 * NEAREST)
        return np.asarray(noise + sampling * (common * (1 - common)) / (own * (1 - own)))

    @cached_property
    def _centre(self) -> float:
        return float(_inside(np.average(self.shares, weights=1 / self._variances), NEAREST))

    @cached_property
    def _slope(self) -> float:
        """Of the logistic function at the centre: shares per unit of the logit scale."""
        return self._centre * (1 - self._centre)

    @cached_property
    def _logits(self) -> Vector:
        centre = math.log(self._centre / (1 - self._centre))
        return np.asarray(centre + (self.shares - self._centre) / self._slope)

    def weights(self, between: float = 0.0) -> Vector:
        """Return those of the sites, adding up to 1, if the variance between them is this."""
        precision = self._precision(between)
        return np.asarray(precision / precision.sum())

    def _precision(self, between: ArrayLike) -> Vector:
        """Return that of the sites, in columns, at each of these variances between them."""
        return np.asarray(1 / (self._variances / self._slope**2 + np.asarray(between)[..., None]))

    @cached_property
    def q(self) -> float:
        """Cochran's Q: how far apart the sites are, in units of their errors."""
        return float(self._scatter(0.0))

    def _scatter(self, between: ArrayLike) -> Vector:
        precision = self._precision(between)
        mean = precision @ self._logits / precision.sum(axis=-1)
        return np.asarray((precision * (self._logits - mean[..., None]) ** 2).sum(axis=-1))

    @property
    def q_p_value(self) -> float:
        """Return how often sites that are all alike would be as far apart."""
        from scipy.special import chdtrc

        return float(chdtrc(len(self.shares) - 1, self.q))

    @property
    def i_squared(self) -> float:
        """The share of the scatter that lies between the sites."""
        return max(0.0, 1 - (len(self.shares) - 1) / self.q) if self.q > 0 else 0.0

    @cached_property
    def tau_squared(self) -> float:
        """The variance between the sites, on the logit scale (DerSimonian and Laird)."""
        precision = self._slope**2 / self._variances
        total = precision.sum() - (precision @ precision) / precision.sum()
        return max(0.0, (self.q - (len(self.shares) - 1)) / float(total))

    @cached_property
    def largest_tau_squared(self) -> float:
        """An upper bound on it, by Q, which falls as it grows."""
        from scipy.special import chdtri

        least = np.array([chdtri(len(self.shares) - 1, CAUTION)])
        return float(self._where_scatter_is(least)[0])

    @property
    def fixed(self) -> float:
        return _share(self._mean(0.0))

    @property
    def random_mean(self) -> float:
        return _share(self._mean(self.largest_tau_squared))

    def fixed_interval(self, level: float) -> Interval:
        """Covers the mean of these sites' populations, weighted as the sites are here."""
        deviation = float(np.linalg.norm(self.weights() * self.deviations))
        return self._around(0.0, level, deviation)

    def noise_interval(self, level: float, *, random: bool) -> Interval:
        """Covers the mean that these sites' rows would have given without noise."""
        return self._around(self.largest_tau_squared if random else 0.0, level, 0.0)

    def random_interval(self, level: float) -> Interval:
        """Covers the mean share of all sites like these."""
        from scipy.special import stdtrit

        between = self.largest_tau_squared
        half = float(stdtrit(len(self.shares) - 1, (1 + level) / 2)) * float(self._error(between))
        return _share(self._mean(between) - half), _share(self._mean(between) + half)

    def prediction_interval(self, level: float) -> Interval | None:
        """Covers the value of one more site like these; with two sites nothing can be said."""
        if len(self.shares) < 3:
            return None
        from scipy.special import chdtri, ndtri, stdtr

        freedom, ranks = len(self.shares) - 1, (np.arange(RANKS) + 0.5) / RANKS
        # What Q would be at the true variance has a known law, and gives the variance back.
        between = self._where_scatter_is(chdtri(freedom, LEAST + (1 - LEAST) * ranks))
        precision = self._precision(between)
        means = precision @ self._logits / precision.sum(axis=1)
        errors = np.maximum(self._error(between), 1e-12)
        normal = ndtri(ranks)
        another = means[:, None] + np.sqrt(between)[:, None] * (normal / normal.std())

        def above(share: float, logit: float) -> bool:
            return bool(np.mean(stdtr(freedom, (another - logit) / errors[:, None])) > share)

        middle, far = float(np.median(means)), 50.0
        low = halved(lambda place: above((1 + level) / 2, place), middle - far, middle, steps=30)[0]
        high = halved(lambda place: above((1 - level) / 2, place), middle, middle + far, steps=30)[
            1
        ]
        return _share(low), _share(high)

    def _where_scatter_is(self, scatter: Vector) -> Vector:
        """Return the variances between sites that make them scatter so much; 0 if none does."""
        # The more they scatter, the more precise they are: no root lies beyond the last of these.
        spread = float(((self._logits - self._logits.mean()) ** 2).sum())
        low, high = np.zeros_like(scatter), spread / np.minimum(scatter, self.q + 1e-300)
        for _ in range(60):
            middle = (low + high) / 2
            above = self._scatter(middle) > scatter
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(scatter < self.q, high, 0.0)

    def _error(self, between: ArrayLike) -> Vector:
        """Return the standard error of the mean (Hartung and Knapp) with these weights."""
        freedom, precision = len(self.shares) - 1, self._precision(between)
        return np.asarray(np.sqrt(self._scatter(between) / freedom / precision.sum(axis=-1)))

    def _mean(self, between: float) -> float:
        return float(self.weights(between) @ self._logits)

    def _around(self, between: float, level: float, deviation: float) -> Interval:
        weights = tuple((self.weights(between) * self.scales).tolist())
        law = NoiseSum(weights=weights, scale=1.0, deviation=deviation)
        half, mean = law.quantile(level) / self._slope, self._mean(between)
        return _share(mean - half), _share(mean + half)


def _inside(shares: ArrayLike, margin: float) -> Vector:
    return np.asarray(np.clip(shares, margin, 1 - margin))


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0
