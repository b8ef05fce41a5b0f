"""Bands hold the curves that they say they hold, and are no wider than they need to be."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from heldout.intervals.ratio import ratio_bounds, single_quantile
from heldout.kernel.curves.registry import method
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.tables import NoisyTable, independent_noise
from heldout.kernel.statistic import Sealed
from heldout.questions.curves.bands import Draws, read_curves, rectangles, uniform

POINTS = 65537
PLACES = np.linspace(0.0, 1.0, 101)
RUNS = 100


def drawn(random: Any, rows: int, kind: str) -> Any:
    labels = (random.random(rows) < 0.3).astype(np.int64)
    scores = 1 / (1 + np.exp(1 - random.normal(1.5 * labels)))
    if kind == "tied":
        scores = np.round(scores * 4) / 4
    counts = np.zeros((2, POINTS), dtype=np.int64)
    np.add.at(counts, (labels, np.rint(scores * (POINTS - 1)).astype(int)), 1)
    return counts


def ends(counts: Any, places: Any) -> tuple[Any, Any]:
    """The least and the largest true positive rate of the curve at each false positive rate."""
    held = counts[:, counts.sum(axis=0) > 0][:, ::-1]
    above = np.concatenate([np.zeros((2, 1)), np.cumsum(held, axis=1)], axis=1)
    false, true = above / above[:, -1:]
    near = 1e-12
    last = np.searchsorted(false, places + near, side="right") - 1
    first = np.searchsorted(false, places - near, side="left")
    between = np.interp(places, false, true)
    met = np.abs(false[last] - places) <= near
    return np.where(met, true[np.minimum(first, last)], between), np.where(met, true[last], between)


@pytest.mark.chance(2e-7, "two binomial tails of 1e-7, at a coverage of 94%")
@pytest.mark.parametrize(
    ("rows", "kind", "epsilon", "neighbours"),
    [
        (600, "tied", "0.5", "replace-one"),
        pytest.param(2_000, "smooth", "1", "replace-one", marks=pytest.mark.slow),
        pytest.param(20_000, "smooth", "1/2", "add-remove", marks=pytest.mark.slow),
    ],
)
def test_simultaneous_bands_hold_the_whole_curve(
    rows: int, kind: str, epsilon: str, neighbours: str
) -> None:
    protection = Protection(neighbours=neighbours)
    made = method(
        "heldout",
        epsilon=Fraction(epsilon),
        protection=protection,
        points=POINTS,
        rows=rows if protection.row_count_is_public else None,
    )
    population = ends(drawn(np.random.default_rng(0), 500_000, kind), PLACES)
    random = np.random.default_rng(5)
    covered, ratios = np.zeros(2), []
    for _ in range(RUNS):
        counts = drawn(random, rows, kind)
        table = made.sample(Sealed(counts.ravel()))
        for index, noise_only in enumerate((True, False)):
            low, high = ends(counts, PLACES) if noise_only else population
            bands = [
                rectangles(table, level=0.95, simultaneous=together, noise_only=noise_only).roc(
                    PLACES, _inside(table)
                )
                for together in (True, False)
            ]
            slack = 1e-9 if noise_only else 2e-3  # the population is itself a large sample
            covered[index] += bool(
                (bands[0].low <= low + slack).all() and (high <= bands[0].high + slack).all()
            )
            ratios.append(bands[0].mean_width / bands[1].mean_width)
    # At a true coverage of 94% so many misses happen once in ten million times.
    assert (RUNS - covered <= binom.ppf(1 - 1e-7, RUNS, 0.06)).all(), covered / RUNS
    assert max(ratios) <= 2.5
    assert min(ratios) >= 1


def _inside(table: NoisyTable) -> Any:
    """A curve that never widens a band: the middle of its own rectangles."""
    found = rectangles(table, level=0.5, simultaneous=False, noise_only=True)
    at = np.concatenate([[0.0], found.low[0] / 2 + found.high[0] / 2, [1.0]])
    to = np.concatenate([[0.0], found.low[1] / 2 + found.high[1] / 2, [1.0]])
    return np.interp(PLACES, np.maximum.accumulate(at), np.maximum.accumulate(to))


def test_a_band_without_noise_is_as_narrow_as_the_bins_and_one_with_more_noise_is_wider() -> None:
    edges, bins = np.arange(0, 33), 32
    negatives, positives = np.linspace(900, 100, bins), np.linspace(100, 900, bins)

    def width(scale: Fraction, *, noise_only: bool) -> float:
        table = NoisyTable(
            edges=edges,
            negatives=negatives,
            positives=positives,
            noise=independent_noise(scale, bins=bins),
        )
        found = rectangles(table, level=0.95, simultaneous=True, noise_only=noise_only)
        above = np.append(0.0, np.cumsum(positives[::-1])) / positives.sum()
        below = np.append(0.0, np.cumsum(negatives[::-1])) / negatives.sum()
        return found.roc(PLACES, np.interp(PLACES, below, above)).mean_width

    exact = width(Fraction(1, 100), noise_only=True)
    assert exact < 0.07
    assert exact < width(Fraction(1, 100), noise_only=False)
    assert exact < width(Fraction(20), noise_only=True) < width(Fraction(80), noise_only=True)


def test_nothing_is_known_of_rates_when_a_class_is_lost_in_the_noise() -> None:
    low, high = ratio_bounds(
        np.array([0.0, -5.0, 3.0]),
        np.array([0.0, 2.0, -1.0]),
        top_variance=400.0,
        rest_variance=400.0,
        rows=0.0,
        quantile=2.0,
    )
    assert (low <= 0.01).all()
    assert (high >= 0.99).all()


def test_bounds_of_a_ratio_hold_it_as_often_as_they_say() -> None:
    random = np.random.default_rng(9)
    deviation, rows, rate = 8.0, 300.0, 0.2
    top = rows * rate + random.laplace(scale=deviation / 2**0.5, size=20_000)
    rest = rows * (1 - rate) + random.laplace(scale=deviation / 2**0.5, size=20_000)
    variance = deviation**2
    for level in (0.8, 0.95):
        low, high = ratio_bounds(
            top,
            rest,
            top_variance=variance,
            rest_variance=variance,
            rows=0.0,
            quantile=single_quantile(level),
        )
        share = np.mean((low <= rate) & (rate <= high))
        assert level - 0.005 <= share <= level + 0.06, "and not far more often"


def test_the_last_bits_of_a_draw_decide_nothing() -> None:
    """A rate that is 1 on one machine and 1 - 2^-53 on another would read another height."""
    rows = np.where(uniform(1, 50, 30) < 0.5, 0.0, 9 * uniform(2, 50, 30))
    moved = rows * (1 + 2.0**-51 * np.arange(-15, 15))
    places = np.array([0.0, 0.2, 1.0])
    heights = [read_curves(*Draws(one, one[:, ::-1]).rates, places) for one in (rows, moved)]
    np.testing.assert_allclose(*heights, rtol=0, atol=1e-9)


def test_curves_are_read_as_one_by_one() -> None:
    x, y = (np.sort(uniform(stream, 20, 9), axis=1) for stream in (3, 4))
    x[:, 0], x[:, 3], x[:, -1] = 0.0, x[:, 2], 1.0  # with a step up
    places = np.append(uniform(5, 7), [0.0, 1.0])
    alone = [np.interp(places, *curve) for curve in zip(x, y, strict=True)]
    np.testing.assert_allclose(read_curves(x, y, places), alone, rtol=0, atol=1e-9)
