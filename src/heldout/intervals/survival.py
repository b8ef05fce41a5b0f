"""Survival from noisy counts of events and censorings by public times, with honest intervals.

Within a bin the risks of an event and of being censored count as constant. Of R rows that reach
the bin d have an event and c are censored, so the survivors are R - d - c, the logarithm of whose
share divides between events and censorings as d to c. Events alone take the logarithm of survival
by d/R g((d + c)/R) with g(u) = -ln(1 - u)/u, which is nearly linear in the counts where many are
left compared with the noise. So the noise of the curve is a weighted sum of Laplace draws, and the
sampling variance is Greenwood's. Times where too few are left are not shown; released numbers alone
decide it.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heldout.arrays import Floats
from heldout.intervals.measure import Interval, checked_level
from heldout.intervals.noise import NoiseSum, halved, normal_quantile, normal_share
from heldout.intervals.ratio import NoisyCounts
from heldout.intervals.tuned import LEAST_AT_RISK, RISK_NOISE

_LEAST = 1e-9  # a survival below it is 0


def cell_sums(times: int) -> tuple[Floats, Floats, Floats]:
    """Return each bin's events, censored rows and rows that reach it, as sums over cells.

    Cells are the censored and the events of each bin by turns, then the rows beyond the last time.

    >>> events, censored, reaching = cell_sums(1)
    >>> events.tolist(), censored.tolist(), reaching.tolist()
    ([[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]])
    """
    cells = np.eye(2 * times + 1)
    reaching = np.array([cells[2 * time :].sum(axis=0) for time in range(times)])
    return cells[1::2], cells[:-1:2], reaching


@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """The share that lives on past each public time, from noisy counts by bin.

    >>> counts = NoisyCounts(estimate=np.array([0.0, 100, 0, 100, 800]), spread=np.eye(5), scale=1)
    >>> curve = SurvivalCurve(counts)
    >>> curve.shares.round(3).tolist(), [round(end, 2) for end in curve.interval(1, 0.95)]
    ([0.9, 0.8], [0.77, 0.82])
    """

    counts: NoisyCounts

    @property
    def times(self) -> int:
        """Return how many public times there are."""
        return (len(self.counts.estimate) - 1) // 2

    @cached_property
    def _cells(self) -> tuple[Floats, Floats, Floats]:
        return cell_sums(self.times)

    @cached_property
    def events(self) -> Floats:
        """Return the events of each bin, as seen."""
        return self._cells[0] @ self.counts.estimate

    @cached_property
    def at_risk(self) -> Floats:
        """Return the rows that reach each bin, as seen."""
        return self._cells[2] @ self.counts.estimate

    @cached_property
    def _left(self) -> Floats:
        """Return the rows that live on past each bin's end and are still seen then."""
        return self.at_risk - self.events - self._cells[1] @ self.counts.estimate

    @cached_property
    def shown(self) -> int:
        """Return how many times can be read, from the first on.

        At each of them, enough are left compared with the noise of their number.
        """
        events, censored, reaching = self._cells
        noise = np.sqrt(self._covariance(*[reaching - events - censored] * 2))
        least = np.maximum(LEAST_AT_RISK, noise / RISK_NOISE)
        enough = (self._left >= least) & (self.at_risk >= least)
        return int(np.argmin(enough)) if not enough.all() else self.times

    def _covariance(self, first: Floats, second: Floats) -> Floats:
        """Return the covariance of the noise of two sums of the cells, bin by bin."""
        product = (first @ self.counts.spread) * (second @ self.counts.spread)
        covariance: Floats = 2 * self.counts.scale**2 * product.sum(axis=-1)
        return covariance

    @cached_property
    def _logs(self) -> tuple[Floats, Floats, Floats]:
        """Return the curve's logarithm at the times shown, its gradient and Greenwood's sum."""
        shown = slice(0, self.shown)
        d, risk, left = self.events[shown], self.at_risk[shown], self._left[shown]
        d_cells, c_cells, risk_cells = (cells[shown] for cells in self._cells)
        gone = 1 - left / risk
        small = np.abs(gone) < 1e-4
        u = np.where(small, 0.5, gone)
        g = np.where(small, 1 + gone / 2, -np.log1p(-u) / u)
        slope = np.where(small, 0.5 + 2 * gone / 3, (1 / (1 - u) + np.log1p(-u) / u) / u)
        # The mean of a bent function of noisy counts, to second order.
        bent = (
            (self._covariance(d_cells, risk_cells) - self._covariance(d_cells, c_cells) / 2)
            / risk**2
            - self._covariance(d_cells, d_cells) / (2 * risk**2)
            - self._covariance(risk_cells, risk_cells) * d / risk**3
        )
        own = (-g / risk - d / risk**2 * slope)[:, None] * d_cells
        others = (-d / risk**2 * slope)[:, None] * c_cells
        below = (d / risk**2 * (g + gone * slope))[:, None] * risk_cells
        seen = (risk + left + d) / 2  # half of the rows lost in a bin are at risk in it
        greenwood = np.maximum(np.cumsum(d / (seen * np.maximum(seen - d, left))), 0.0)
        return (
            np.cumsum(-d / risk * g - bent),
            np.cumsum(own + others + below, axis=0),
            np.maximum.accumulate(greenwood),
        )

    @cached_property
    def raw(self) -> Floats:
        """Return the estimate at the times shown, which noise may push up and down."""
        return np.exp(self._logs[0])

    @cached_property
    def shares(self) -> Floats:
        """Return the estimate at the times shown: falling, from 1 at most."""
        raw = np.minimum(self.raw, 1.0)
        falling = np.minimum.accumulate(raw)
        rising = np.maximum.accumulate(raw[::-1])[::-1]
        return (falling + rising) / 2

    def _weights(self, time: int) -> tuple[float, ...]:
        combined = self.counts.spread.T @ self._logs[1][time]
        return tuple(combined.tolist())

    def _rows(self, time: int) -> float:
        """Return how many uncensored rows would tell as much about the share past this time."""
        share, greenwood = float(self.shares[time]), float(self._logs[2][time])
        left = max(float(self.at_risk[time] - self.events[time]), 1.0)
        first = max(float(self.counts.estimate.sum()), left)
        least = min(left / max(share, _LEAST), first)
        seen = (1 - share) / (share * greenwood) if greenwood > 0 and share > 0 else first
        return min(max(seen, least), first)

    def noise_interval(self, time: int, level: float) -> Interval:
        """Covers what these very rows would have given without noise, at a time that is shown."""
        if time >= self.shown:
            return (0.0, 1.0 if self.shown == 0 else self.noise_interval(self.shown - 1, level)[1])
        reach = NoiseSum(weights=self._weights(time), scale=self.counts.scale).quantile(level)
        log = float(self._logs[0][time])
        return (min(math.exp(log - reach), 1.0), min(math.exp(log + reach), 1.0))

    def interval(self, time: int, level: float) -> Interval:
        """Covers the share of the population; beyond what is shown, from 0 to the last one's end.

        A share is kept if the sampling error that *it* implies and the noise explain the distance.
        """
        if time >= self.shown:
            return (0.0, 1.0 if self.shown == 0 else self.interval(self.shown - 1, level)[1])
        return self._interval(time, self._quantile(time, level))

    def ends(self, time: int, level: float, noise: bool) -> Interval:
        """Return the interval of noise alone, or the one of both."""
        return self.noise_interval(time, level) if noise else self.interval(time, level)

    def noise_deviation(self, time: int) -> float:
        """Return the standard deviation of the noise of the logarithm, at a time that is shown."""
        return math.sqrt(self._noise_variance(time))

    def _noise_variance(self, time: int) -> float:
        return 2 * self.counts.scale**2 * sum(weight * weight for weight in self._weights(time))

    def _sampling_variance(self, time: int, share: float) -> float:
        return (1 - share) / (max(share, _LEAST) * self._rows(time))

    def _quantile(self, time: int, level: float) -> float:
        """Return the quantile of noise and sampling error, in their standard deviations."""
        variance = self._sampling_variance(time, float(np.clip(self.shares[time], 0.01, 0.99)))
        law = NoiseSum(self._weights(time), self.counts.scale, math.sqrt(variance))
        return law.quantile(level) / math.sqrt(variance + self._noise_variance(time))

    def _interval(self, time: int, quantile: float) -> Interval:
        # No share is above 1: held to it, the estimate is nearer to every share there is.
        log, noise = min(float(self._logs[0][time]), 0.0), self._noise_variance(time)
        centre = max(math.exp(log), _LEAST)
        rows = self._rows(time)

        def plausible(share: float) -> bool:
            # Half a row, for counts are whole.
            gap = max(abs(log - math.log(share)) - 1 / (2 * rows * share), 0.0)
            return gap <= quantile * math.sqrt(noise + self._sampling_variance(time, share))

        low = halved(plausible, centre, _LEAST, steps=40)[1]
        high = halved(plausible, centre, 1.0, steps=40)[1]
        return (low, high)

    def surprise(self, time: int, share: float) -> float:
        """Return how often so far a share would be released if the population's were `share`."""
        if time >= self.shown:
            return 1.0
        inside = min(max(share, _LEAST), 1.0)
        deviation = math.sqrt(self._sampling_variance(time, min(inside, 1 - 1e-6)))
        law = NoiseSum(self._weights(time), self.counts.scale, deviation)
        gap = max(
            abs(float(self._logs[0][time]) - math.log(inside)) - 1 / (2 * self._rows(time)), 0
        )
        return min(2 * law.survival(gap), 1.0)

    def band(self, level: float) -> tuple[Floats, Floats]:
        """Return a band that holds the population's whole curve, at the times shown, at this level.

        Each time's interval at a level so high that neighbouring times, which are correlated, hold
        together: a product over pairs, which is at most the chance that all hold.
        """
        pointwise = simultaneous_level(self._correlations, checked_level(level))
        ends = np.array([self.interval(time, pointwise) for time in range(self.shown)])
        ends = ends.reshape(self.shown, 2)
        return np.minimum.accumulate(ends[:, 0]), np.maximum.accumulate(ends[::-1, 1])[::-1]

    @cached_property
    def _correlations(self) -> Floats:
        """Return how each time's error is correlated with the next one's."""
        if self.shown < 2:
            return np.zeros(0)
        spread = self._logs[1] @ self.counts.spread * self.counts.scale * math.sqrt(2)
        sampling = np.array(
            [
                self._sampling_variance(time, min(float(self.shares[time]), 1 - 1e-6))
                for time in range(self.shown)
            ]
        )
        sampling = np.maximum.accumulate(sampling)
        variance = (spread**2).sum(axis=1) + sampling
        together = (spread[:-1] * spread[1:]).sum(axis=1) + sampling[:-1]
        correlations: Floats = np.clip(together / np.sqrt(variance[:-1] * variance[1:]), 0.0, 0.999)
        return correlations


def simultaneous_level(correlations: Floats, level: float) -> float:
    """Return the level of each of several normal errors at which all hold together at `level`.

    `correlations` are those of each error with the next.

    >>> [round(simultaneous_level(np.zeros(count), 0.95), 3) for count in (0, 1)]
    [0.95, 0.975]
    """
    places, weights = np.polynomial.legendre.leggauss(64)

    def together(quantile: float) -> float:
        inside = float(2 * normal_share(np.array([quantile]))[0] - 1)
        at = places * quantile
        density = np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi) * weights * quantile
        product = inside
        for correlation in correlations:
            rest = math.sqrt(1 - correlation**2)
            upper = normal_share((quantile - correlation * at) / rest)
            lower = normal_share((-quantile - correlation * at) / rest)
            product *= min(float(density @ (upper - lower)) / inside, 1.0)
        return product

    low = float(normal_quantile(np.array([(1 + level) / 2]))[0])
    quantile = halved(lambda place: together(place) < level, low, low + 6, steps=30)[1]
    return float(2 * normal_share(np.array([quantile]))[0] - 1)
