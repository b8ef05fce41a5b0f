"""A huge epsilon gives the numbers of scikit-learn; with a small one they stay in range."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as reference

import heldout as ho
from heldout.intervals import Metric, contrasts, registered
from heldout.intervals.confusion import NoisyConfusion
from heldout.intervals.readings import CELLS, METRICS, attribute
from heldout.kernel.noise import DiscreteLaplace

GENERATOR = np.random.default_rng(17)
SCORES = GENERATOR.random(800)
LABELS = (GENERATOR.random(800) < SCORES**2).astype(int)
CALLED = (SCORES >= 0.375).astype(int)
HUGE = "1000000"


def released(neighbours: str = "replace-one", epsilon: str = HUGE, **options: Any) -> Any:
    dataset = ho.Dataset(
        {"y": LABELS, "p": SCORES}, label="y", score="p", neighbours=neighbours, **options
    )
    session = ho.Session(dataset, budget=ho.Budget(epsilon=epsilon))
    return session.confusion(threshold=0.375, epsilon=epsilon)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_with_a_huge_epsilon_every_ratio_is_that_of_scikit_learn(neighbours: str) -> None:
    release = released(neighbours)
    expected = {
        "accuracy": reference.accuracy_score(LABELS, CALLED),
        "recall": reference.recall_score(LABELS, CALLED),
        "precision": reference.precision_score(LABELS, CALLED),
        "specificity": reference.recall_score(LABELS, CALLED, pos_label=0),
        "negative predictive value": reference.precision_score(LABELS, CALLED, pos_label=0),
        "prevalence": LABELS.mean(),
        "F1 score": reference.f1_score(LABELS, CALLED),
        "false discovery rate": 1 - reference.precision_score(LABELS, CALLED),
        "false negative rate": 1 - reference.recall_score(LABELS, CALLED),
        "false positive rate": 1 - reference.recall_score(LABELS, CALLED, pos_label=0),
        "Jaccard index": reference.jaccard_score(LABELS, CALLED),
        "selection rate": CALLED.mean(),
    }
    assert set(expected) == set(registered()), "a new metric wants its line here"
    for name, value in expected.items():
        assert release.measures[name] == pytest.approx(value, abs=1e-12), name
    for beta in (0.5, 2.0, 3.0):
        fbeta = reference.fbeta_score(LABELS, CALLED, beta=beta)
        assert release.f_score(beta) == pytest.approx(fbeta, abs=1e-12)
    assert release.matrix() == reference.confusion_matrix(LABELS, CALLED).tolist()


def test_a_threshold_belongs_to_the_positive_side() -> None:
    table = {"y": [1, 0, 1, 0], "p": [0.5, 0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1)]}
    dataset = ho.Dataset(table, label="y", score="p")
    release = ho.Session(dataset, budget=ho.Budget(epsilon=HUGE)).confusion(epsilon=HUGE)
    assert release.matrix() == [[0, 2], [1, 1]]


def test_names_lead_to_the_same_measures() -> None:
    release = released()
    for name in CELLS:
        assert getattr(release, name.replace(" ", "_")) == release.measures[name]
    for name in (*registered(), *contrasts()):
        assert attribute(name) in dir(release)
        assert getattr(release, attribute(name)) == release.measures[name]
    assert release.F1_score == release.f1_score
    assert release.f_score() == release.measures["F1 score"]
    assert float(release) == release.value == release.accuracy, "accuracy is the headline"


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_whatever_the_noise_does_values_and_intervals_stay_in_range(neighbours: str) -> None:
    dataset = ho.Dataset({"y": [1], "p": [0.5]}, label="y", score="p", neighbours=neighbours)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    for _ in range(12):
        release = session.confusion(epsilon="1/100")
        for name, measure in release.measures.items():
            least, most = 0.0, math.inf if name in CELLS and neighbours == "add-remove" else 1
            if name in contrasts():
                least, most = contrasts()[name].low, contrasts()[name].high
            low, high = measure.interval()
            assert least <= low <= measure.value <= high <= most, name
            low, high = measure.noise_interval()
            assert least <= low <= measure.value <= high <= most, name


@pytest.mark.chance(1e-8, "20 counts of 78 and more, 2e-9 in all")
def test_a_public_total_is_used() -> None:
    """Where the number of rows is public the four counts add up to it, give or take rounding.

    At this threshold each is 78 or more: noise of scale 4 below that, which is cut at 0, has a
    chance of 2e-9. Without the public number five sums would all be that near in 3 of 10,000.
    """
    dataset = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    session = ho.Session(dataset, budget=ho.Budget(epsilon=3))
    for _ in range(5):
        matrix = session.confusion(threshold=0.65, epsilon="1/2").matrix()
        assert abs(sum(map(sum, matrix)) - 800) <= 2


@pytest.mark.chance(1e-09, "--louder 20: 0 of 6 runs fail")
def test_the_interval_of_a_count_is_as_wide_as_its_noise_and_one_more_at_most() -> None:
    """P(|noise| > k) is 2 r^(k + 1) / (1 + r) with r = exp(-1/scale); the scale is 4."""
    r = math.exp(-1 / 4)
    half = next(k for k in range(100) if 2 * r ** (k + 1) / (1 + r) <= 0.05)
    release = released("add-remove", "1/4")
    largest = max(getattr(release, attribute(name)) for name in CELLS)
    low, high = largest.noise_interval()
    assert half <= (high - low) / 2 <= half + 1


def test_the_population_interval_is_wider_than_that_of_the_noise() -> None:
    release = released(epsilon="2")
    for name in registered():
        noise, whole = release.measures[name].noise_interval(), release.measures[name].interval()
        assert whole[0] <= noise[0] + 1e-9, name
        assert whole[1] >= noise[1] - 1e-9, name


@pytest.mark.parametrize("metric", registered().values(), ids=registered())
def test_a_registered_metric_is_a_share(metric: Metric) -> None:
    """The numerator is part of the denominator, so the ratio lies in [0, 1] for any counts."""
    assert len(metric.numerator) == len(metric.denominator) == 4
    pairs = zip(metric.numerator, metric.denominator, strict=True)
    assert all(0 <= top <= bottom for top, bottom in pairs)
    assert any(metric.denominator)
    assert metric.meaning
    assert metric.scikit_learn


def test_a_name_is_taken_once_and_accuracy_is_the_headline() -> None:
    assert len(registered()) == len(METRICS)
    assert next(iter(registered())) == "accuracy"


@pytest.mark.parametrize(
    "drawn", [[118, 124, 143, 118], [-3, 2, 1, 499], [0, 0, 0, 3], [9, 9, 9, 9]]
)
def test_the_four_counts_add_up_to_a_public_number_of_rows(drawn: list[int]) -> None:
    mechanism = DiscreteLaplace.for_epsilon(Fraction(1), l1_sensitivity=2, dimension=4)
    noisy = NoisyConfusion(np.array(drawn), mechanism, rows=500, terms="")
    counts = [noisy.measures[name].value for name in CELLS]
    assert sum(counts) == 500
    assert min(counts) >= 0
