"""Bands around a fitted curve, where the rows' own curve is steep, tied or cornered."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.kernel.noise.tables.table import independent_noise
from heldout.questions.curves.bands import Band
from heldout.questions.curves.corridor import corridor
from heldout.questions.curves.fit import Fitted, fitted
from heldout.questions.curves.margins import Along
from heldout.questions.curves.methods.heldout import TableWithArea

PLACES = np.linspace(0, 1, 1001)


def fit_of(negatives: list[int], positives: list[int], scale: Fraction = Fraction(1)) -> Fitted:
    """Of counts from the lowest scores up, that happen to have no noise."""
    table = TableWithArea(
        edges=np.append(np.arange(len(negatives)) * 6, 100),
        negatives=np.array(negatives),
        positives=np.array(positives),
        noise=independent_noise(scale, bins=len(negatives)),
        rows=sum(negatives) + sum(positives),
        area=None,
    )
    return fitted(table, score_range=(0.0, 1.0))


def band_of(fit: Fitted, at: Any = PLACES) -> Band:
    found = corridor(fit, level=0.95, simultaneous=True, noise_only=True)
    return found.roc(at, np.interp(at, fit.curve.fpr, fit.curve.tpr))


def rows_curve(negatives: list[int], positives: list[int]) -> tuple[Any, Any]:
    """Where all rows of a bin are tied: straight lines between its edges."""
    false, true = (
        np.append(0, np.cumsum(each[::-1])) / sum(each) for each in (negatives, positives)
    )
    return false, true


def assert_holds(band: Band, curve: tuple[Any, Any]) -> None:
    height = np.interp(band.at, *curve)
    assert (band.low <= height + 1e-9).all()
    assert (height <= band.high + 1e-9).all()


STEEP = [700, 500, 400, 300, 200, 0, 0, 0], [40, 60, 80, 100, 120, 200, 200, 200]
TIED = [620, 0, 0, 2300, 0, 0, 1450, 460, 0, 20], [10, 0, 0, 170, 0, 0, 280, 460, 0, 60]
HEAPS = [8, 4, 0, 7, 109, 130, 545, 645, 663, 676, 121, 273, 0, 0, 20, 16], [
    0, 0, 0, 1, 1, 0, 3, 3, 9, 4, 0, 3, 0, 0, 449, 310,
]  # fmt: skip
LOST = [500, 450, 400, 350, 200, 80, 20, 2], [4, 3, 3, 2, 8, 20, 25, 35]


@pytest.mark.parametrize("counts", [STEEP, TIED, HEAPS, LOST])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(6)])
def test_a_band_holds_the_curve_of_rows_that_are_tied_in_each_bin(
    counts: tuple[list[int], list[int]], scale: Fraction
) -> None:
    band = band_of(fit_of(*counts, scale))
    assert_holds(band, rows_curve(*counts))
    assert band.mean_width < 0.45


def test_a_band_reaches_as_high_as_a_curve_that_rises_straight_up() -> None:
    for scale in (Fraction(1, 2), Fraction(4)):
        band = band_of(fit_of(*STEEP, scale))
        assert band.high[0] >= 0.6, "600 of 1,000 positives score above all negatives"
        assert band.low[0] == 0


def test_a_band_holds_a_corner_where_the_lines_of_the_bins_beside_meet() -> None:
    negatives, positives = [900, 800, 300, 30, 15, 5], [20, 30, 150, 400, 300, 200]
    fit = fit_of(negatives, positives, Fraction(1, 2))
    false, true = rows_curve(negatives, positives)
    # The third bin from the top goes on as steep as the one before, then as flat as the one after.
    rise, run = np.diff(true), np.diff(false)
    steep, flat = rise[2] / run[2], rise[4] / run[4]
    start, end = (false[3], true[3]), (false[4], true[4])
    turn = (end[1] - start[1] - flat * (end[0] - start[0])) / (steep - flat)
    corner = start[0] + turn, start[1] + steep * turn
    assert corner[1] > np.interp(corner[0], fit.curve.fpr, fit.curve.tpr) + 0.02
    (high,) = band_of(fit, np.array([corner[0]])).high
    assert high >= corner[1] - 1e-3


def test_bins_without_rows_do_not_make_a_curve_stray() -> None:
    """Where a bin is shorter than the step of a slope, the slope is that of another bin."""
    with_gaps, without = (
        Along(fit_of(*([each for each in one if each or keep] for one in TIED), scale=Fraction(2)))
        for keep in (True, False)
    )
    strays = [float(np.sqrt(np.diag(each.noise)).max()) for each in (with_gaps, without)]
    assert strays[0] < 2 * strays[1] < 0.1


def test_no_point_of_a_band_is_believed_to_be_known_much_better_than_the_counts() -> None:
    along = Along(fit_of(*LOST, scale=Fraction(2)))
    down, up = along.least
    # The last of the positives are four, give or take 2.8: the deviation of one bin.
    last = along.places > 1.5
    assert down[last].max() >= 0.5 * 0.5 * 2 * 2**0.5 / 100
    assert (up >= down).all()
    band = corridor(along.fit, level=0.95, simultaneous=True, noise_only=True)
    assert np.interp(0.6, *band.low) <= 0.93, "7 of 100 positives lie lower"
