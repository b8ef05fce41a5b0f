"""Sampling variances by placements: right against DeLong and the bootstrap, at a fixed price."""

import itertools
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from heldout import questions as q
from heldout.data.description import ScoredRows
from heldout.data.scores import CELLS
from heldout.intervals.areas import (
    Influence,
    Scatter,
    cell_shares,
    influence_on_area,
    influence_on_difference,
    influence_on_precision,
)
from heldout.intervals.readings import Curve
from heldout.kernel import Loss, Neighbours, Protection, price
from heldout.kernel.ranking.sensitivity import average_precision
from heldout.kernel.ranking.statistic import SQUARES, STEPS, InfluenceMoments, RankedRows
from heldout.kernel.ranking.tuned import LEAST_EPSILON, OUTRIGHT
from heldout.questions.ranking.release import RankingStages

RANDOM = np.random.default_rng(1988)
SIZE = 6000
LABELS = (RANDOM.random(SIZE) < 0.2).astype(np.int64)
SHARED = RANDOM.standard_t(3, SIZE)
OWN, RIVAL = (
    1 / (1 + np.exp(1 - SHARED - 1.4 * LABELS - 0.6 * RANDOM.normal(size=SIZE))) for _ in range(2)
)
COUNTS = (float((LABELS == 0).sum()), float((LABELS == 1).sum()))


def exact_curve(scores: Any, labels: Any = LABELS) -> Curve:
    """The rows' own curve, un-noised, which only a test may look at."""
    thresholds = np.append(1.1, np.sort(np.unique(scores))[::-1])
    rates = [
        1 - np.searchsorted(np.sort(scores[labels == which]), thresholds) / (labels == which).sum()
        for which in (0, 1)
    ]
    return Curve(
        fpr=rates[0], tpr=rates[1], thresholds=thresholds, positives=COUNTS[1], negatives=COUNTS[0]
    )


def placements(scores: Any) -> list[Any]:
    """Of the positives among the negatives, and of the negatives among the positives."""
    own, other = scores[LABELS == 1], scores[LABELS == 0]
    return [
        np.searchsorted(np.sort(other), own) / other.size,
        1 - np.searchsorted(np.sort(own), other) / own.size,
    ]


def variance(found: Influence) -> float:
    """By the statistic's own vector, without noise."""
    columns = {"label": LABELS, "n": np.ones(SIZE, dtype=np.int64)}
    if found.rival_cuts is None:
        columns["point"] = np.rint(OWN * CELLS).astype(np.int64)
    else:
        columns["place_0"] = np.searchsorted(found.cuts, OWN, side="right")
        columns["place_1"] = np.searchsorted(found.rival_cuts, RIVAL, side="right")
    return found.variance(found.statistic((0.0, 1.0)).read(columns), scale=0.0)[0]


def test_the_moments_of_an_area_are_its_variance_by_delong() -> None:
    found = influence_on_area(exact_curve(OWN), counts=COUNTS)
    delong = sum(each.var(ddof=1) / each.size for each in placements(OWN))
    assert variance(found) == pytest.approx(delong, rel=0.03)


def test_the_moments_of_a_difference_are_its_paired_variance_by_delong() -> None:
    found = influence_on_difference(exact_curve(OWN), exact_curve(RIVAL), counts=COUNTS)
    both = zip(placements(OWN), placements(RIVAL), strict=True)
    delong = sum((second - first).var(ddof=1) / first.size for first, second in both)
    assert variance(found) == pytest.approx(delong, rel=0.1)
    apart = sum(each.var() / each.size for each in (*placements(OWN), *placements(RIVAL)))
    assert delong < apart / 2, "the models agree, so that pairing matters"


def test_a_difference_of_a_model_from_itself_has_no_variance() -> None:
    found = influence_on_difference(exact_curve(OWN), exact_curve(OWN), counts=COUNTS)
    assert np.abs(np.diag(found.positives)).max() == 0
    assert np.abs(np.diag(found.negatives)).max() == 0


def test_the_influences_of_average_precision_give_its_variance_by_the_bootstrap() -> None:
    curve = exact_curve(OWN)
    found = influence_on_precision(curve, counts=COUNTS)
    values = []
    for _ in range(300):
        rows = RANDOM.integers(0, SIZE, SIZE)
        scores, labels = OWN[rows], LABELS[rows]
        values.append(float(average_precision(scores[labels == 1], scores[labels == 0])))
    typical = found.typical_variance(cell_shares(curve, found.cuts))
    assert np.sqrt(typical) == pytest.approx(np.std(values), rel=0.2)


def test_noise_of_the_class_sums_does_not_lower_the_variance() -> None:
    found = influence_on_area(exact_curve(OWN), counts=COUNTS)
    scale = 10.0 * STEPS
    noisy = RANDOM.laplace(scale=scale, size=(4000, 3))
    noisy[:, 0] += 1e6 * STEPS
    several = [found.variance(each, scale=scale)[0] for each in noisy]
    alone = found.variance([1e6 * STEPS, 0, 0], scale=0.0)[0]
    error = np.std(several) / np.sqrt(len(several))
    assert abs(np.mean(several) - alone) < 5 * error


def test_a_released_variance_beats_the_assumed_one_as_its_noise_falls() -> None:
    prior = Scatter.around(1.0, spread=0.4)
    means = []
    for scale in (100.0, 1.0, 0.01):
        seen = Scatter.seen(2.0, scale=scale, prior=prior)
        assert seen.weights.sum() == pytest.approx(1.0)
        means.append(float(seen.ratios @ seen.weights))
    assert means[0] == pytest.approx(float(prior.ratios @ prior.weights), rel=0.15)
    assert means[0] < means[1] < means[2]
    assert means[2] == pytest.approx(2.0, rel=0.15)


PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 3))
]


@pytest.mark.parametrize("metric", ["auc", "average-precision", "auc-difference"])
@pytest.mark.parametrize("protection", PROTECTIONS, ids=str)
@pytest.mark.parametrize("epsilon", [LEAST_EPSILON, Fraction(1, 3), Fraction(100)], ids=str)
def test_a_value_its_tables_and_its_moments_together_cost_epsilon_exactly(
    metric: str, protection: Protection, epsilon: Fraction
) -> None:
    stages = RankingStages(
        metric=metric,
        epsilon=epsilon,
        protection=protection,
        rows=5000 if protection.row_count_is_public else None,
        smaller_class=None if protection.row_count_is_public else 1000,
        score_range=(0.0, 1.0),
        statistic=RankedRows(metric),
    )
    request = stages.request(parameters={})
    assert price(request.event()) == Loss.pure(epsilon)


def test_influences_beyond_their_steps_and_cuts_out_of_order_are_refused() -> None:
    for wrong in (
        {"cuts": (0.5, 0.25), "negatives": (0, 0, 0), "positives": (0, 0, 0)},
        {"cuts": (0.5,), "negatives": (0, STEPS + 1), "positives": (0, 0)},
        {"cuts": (0.5,), "negatives": (0,), "positives": (0, 0)},
        {"cuts": (float("nan"),), "negatives": (0, 0), "positives": (0, 0)},
    ):
        with pytest.raises(Exception, match="must be"):
            InfluenceMoments(**wrong)  # type: ignore[arg-type]
    assert STEPS % (4 * SQUARES) == 0, "the proof needs a whole number here"


def test_only_public_facts_decide_whether_the_sampling_error_is_bought() -> None:
    def stages(**facts: Any) -> RankingStages:
        asked: dict[str, Any] = {
            "metric": "auc",
            "epsilon": Fraction(1),
            "protection": PROTECTIONS[0],
            "rows": 6000,
            "score_range": (0.0, 1.0),
            "statistic": RankedRows("auc"),
        }
        return RankingStages(**{**asked, **facts})

    private = Protection(neighbours="add-remove")
    assert stages().worthwhile
    assert not stages(rows=4000).worthwhile
    assert not stages(epsilon=Fraction(1, 21), rows=10**9).worthwhile
    assert not stages(rows=None, protection=private).worthwhile
    assert stages(rows=None, protection=private, smaller_class=2000).worthwhile


@pytest.mark.parametrize("kind", [q.Auc, q.AveragePrecision, partial(q.Compare, score="r")])
@pytest.mark.parametrize(
    "sizes",
    [
        [(rows, Fraction(1)) for rows in (4900, 5000, 5001, 5200, 5700, 6400, 9000)],
        [(rows, Fraction(1)) for rows in (480, 500, 501, 520, 550, 600, 700, 900, 1200)],
        [(round(400 * 1.25**step), Fraction(1)) for step in range(18)],
        pytest.param(
            [(1000, Fraction(round(300 * 1.25**step), 1000)) for step in range(18)],
            marks=pytest.mark.chance(1e-7, "two of AP's widths, whose logarithms vary by .12"),
        ),
        [(5000, Fraction(part, 100)) for part in (98, 100, 101, 110, 130, 200)],
        [(10**6, Fraction(part, 1000)) for part in (49, 50, 51, 55, 70, 100)],
    ],
)
def test_more_rows_or_more_epsilon_never_widen_an_interval(kind: Any, sizes: Any) -> None:
    """At 5,000 rows times epsilon the noise once jumped by a sixth, of comparisons at 500.

    Where counts are drawn instead a forecast is itself drawn; test_value_or_counts.py goes there.
    """
    least = OUTRIGHT.get(kind(epsilon=1).metric, 0)
    sizes = [(rows, epsilon) for rows, epsilon in sizes if rows * epsilon >= least]
    assert len(sizes) > 2
    widths = []
    facts: dict[str, Any] = {"label": "y", "score": "p", "rivals": ("r",)}
    for rows, epsilon in sizes:
        about = ScoredRows(name="", protection=PROTECTIONS[0], rows=rows, **facts)
        quoted = kind(epsilon=epsilon).expected(about, q.Guess().about(rows))
        [width] = quoted.values()
        widths.append((width.noise, width.whole))
    for before, after in itertools.pairwise(widths):
        assert after[0] <= before[0] * 1.003
        assert after[1] <= before[1] * 1.003  # what is believed of areas is rounded
