"""What a release says about ranking on the grid, as a bound that holds."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import heldout as ho
import heldout.questions.ranking.questions
from heldout.questions.ranking.release import TieBound


def rows(count: int, *, decimals: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = (generator.random(count) < 0.3).astype(int)
    scores = 1 / (1 + np.exp(-generator.normal(1.5 * labels, 1.0)))
    return labels, np.round(scores, decimals)


def session(labels: np.ndarray, scores: np.ndarray) -> ho.Session:
    table = ho.Dataset({"y": labels, "p": scores}, label="y", score="p")
    return ho.Session(table, budget=ho.Budget(epsilon=1000))


def grid_error(
    labels: np.ndarray, scores: np.ndarray, *, range_width: float
) -> tuple[float, float]:
    """How far the exact metrics lie from those of the cells; the grid has 2^16 of them."""
    cells = np.rint(scores / range_width * 2**16)
    return (
        abs(roc_auc_score(labels, scores) - roc_auc_score(labels, cells)),
        abs(average_precision_score(labels, scores) - average_precision_score(labels, cells)),
    )


def test_every_bound_holds_where_the_grid_is_coarse() -> None:
    # A range 5,000 times as wide as the scores: they share 13 cells, and ties matter.
    labels, scores = rows(4000, decimals=9)
    table = ho.Dataset({"y": labels, "p": scores}, label="y", score="p", score_range=(0, 5000))
    asked = ho.Session(table, budget=ho.Budget(epsilon=1000))
    area_error, precision_error = grid_error(labels, scores, range_width=5000)
    assert area_error > 1e-4
    alone = asked.auc(epsilon=50, scores="grid").tie_bound()
    curves = asked.curves(epsilon=50).tie_bound()
    bought = asked.grid_ties(epsilon=50).tie_bound()
    assert alone is not None
    assert area_error < bought.auc < curves.auc + 0.02
    assert bought.auc < alone.auc
    assert area_error < alone.auc
    assert curves.average_precision is not None
    assert precision_error < curves.average_precision


@pytest.mark.chance(1e-7, "an interval at 1 - 1e-7")
def test_the_released_share_of_tied_pairs_is_near_the_true_one() -> None:
    labels, scores = rows(3000, decimals=1)
    positives, negatives = scores[labels == 1], scores[labels == 0]
    true = np.mean(positives[:, None] == negatives[None, :])
    released = session(labels, scores).grid_ties(epsilon=50)
    low, high = released.noise_interval(0.9999999)
    assert low <= true <= high
    assert high - low < 0.02
    wide = released.interval(0.95)
    assert wide[0] <= released.noise_interval(0.95)[0]
    assert wide[1] >= released.noise_interval(0.95)[1]
    assert released.loss.epsilon == 50
    assert released.tie_bound(0.95).auc >= true / 2 - 0.005


def test_exact_scores_have_no_bound_to_tell() -> None:
    labels, scores = rows(500, decimals=3)
    asked = session(labels, scores)
    assert asked.auc(epsilon=10).tie_bound() is None
    assert asked.report(epsilon=10).tie_bound() is None
    assert asked.report(epsilon=10).as_dict()["ties"] is None


@pytest.mark.parametrize("curves", [False, True])
def test_a_report_on_the_grid_tells_the_bound_and_costs_the_same(
    monkeypatch: pytest.MonkeyPatch, curves: bool
) -> None:
    monkeypatch.setattr(heldout.questions.ranking.questions, "LARGEST_EXACT", 100)
    labels, scores = rows(3000, decimals=9)
    asked = session(labels, scores)
    report = asked.report(epsilon=40, curves=curves)
    assert sum(report.shares.values()) == 40
    assert asked.spent.epsilon == 40
    assert report.shares["grid-ties"] < report.shares["auc"] / 10
    bound = report.tie_bound()
    assert isinstance(bound, TieBound)
    assert grid_error(labels, scores, range_width=1)[0] < bound.auc < 0.05
    assert (bound.average_precision is not None) == curves
    assert report.as_dict()["ties"]["auc"] == bound.auc
    assert "on the public grid" in bound.sentence()
    page = report.html()
    assert "The order of rows within a cell can move the AUC by at most" in page


def test_a_report_too_cheap_for_ties_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heldout.questions.ranking.questions, "LARGEST_EXACT", 100)
    labels, scores = rows(3000, decimals=9)
    report = session(labels, scores).report(epsilon="0.02")
    assert "grid-ties" not in report.releases
    bound = report.tie_bound()
    assert bound is not None
    assert bound.source == "the area alone"
