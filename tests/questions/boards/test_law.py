"""Transcripts of small boards, by the exact law: neighbours are never told apart by more."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from heldout.kernel.noise.selection import SparseVector

FAR = 400


def _law(scale: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Chances of -FAR..FAR, and of being at least each of -2 FAR..2 FAR."""
    points = np.arange(-FAR, FAR + 1)
    chances = np.exp(-np.abs(points) / float(scale))
    chances /= chances.sum()
    return points, chances


def _transcript(
    totals: list[int], bars: list[int], answers: tuple[int, ...], test: SparseVector, *, kept: bool
) -> float:
    """P(these answers) for a bar that is kept, or drawn anew for each submission."""
    levels, chances = _law(test.threshold_scale)
    _, noise = _law(test.query_scale)
    at_least = np.concatenate([noise[::-1].cumsum()[::-1], [0.0]])
    factors = []
    for total, bar, above in zip(totals, bars, answers, strict=True):
        place = np.clip(bar + levels - total + FAR, 0, 2 * FAR + 1)
        reached = at_least[place]
        factors.append(reached if above else 1 - reached)
    if kept:
        return float((chances * np.prod(factors, axis=0)).sum())
    return math.prod(float((chances * each).sum()) for each in factors)


def _worst(*, kept: bool, submissions: int = 6) -> float:
    """The largest loss over neighbours and transcripts whose bars move with the answers."""
    test = SparseVector(Fraction(1), sensitivity=1, limit=1)
    worst = 0.0
    for first, second in (([0] * submissions, [1] * submissions), ([0, 1] * 3, [1, 0] * 3)):
        for answers in itertools.product((0, 1), repeat=len(first)):
            if sum(answers) > 1:
                continue
            seen = answers[: answers.index(1) + 1] if 1 in answers else answers
            bars = [-2 + place % 2 for place in range(len(seen))]
            chances = [
                _transcript(each[: len(seen)], bars, seen, test, kept=kept)
                for each in (first, second)
            ]
            worst = max(worst, abs(math.log(chances[0] / chances[1])))
    return worst


def test_no_transcript_tells_neighbours_apart_by_more_than_the_price() -> None:
    assert _worst(kept=True) <= 1 + 1e-9


def test_a_board_that_redraws_its_bar_breaks_the_claim() -> None:
    test = SparseVector(Fraction(1), sensitivity=1, limit=1)
    none, count = (0,) * 60, 60
    kept, redrawn = (
        [_transcript([each] * count, [-2] * count, none, test, kept=way) for each in (0, 1)]
        for way in (True, False)
    )
    assert math.log(kept[0] / kept[1]) <= 1
    assert math.log(redrawn[0] / redrawn[1]) > 1


@pytest.mark.chance(6e-8, "binomial tails beyond 5.5 deviations: 5.3e-8")
@pytest.mark.parametrize("above", [0, 1])
def test_the_mechanism_follows_the_law(above: int) -> None:
    from heldout.kernel.noise.selection import AboveBar, secret_of
    from heldout.kernel.statistic import Sealed

    test = SparseVector(Fraction(2), sensitivity=1, limit=1)
    drawn = [
        AboveBar(test, 3, 1, secret_of(test)).sample(Sealed(np.array([1]))) == above
        for _ in range(1200)
    ]
    expected = _transcript([1], [3], (above,), test, kept=True)
    assert abs(np.mean(drawn) - expected) < 5.5 * math.sqrt(expected * (1 - expected) / 1200)
