"""Metrics that are no ratio: what scikit-learn gives, and intervals that cover, by simulation."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as reference

from heldout.errors import ArgumentError
from heldout.intervals import contrasts
from heldout.intervals.confusion import NoisyConfusion
from heldout.intervals.joint import _cube, laid_out
from heldout.intervals.readings import Contrast, mean_cost
from heldout.kernel.noise import DiscreteLaplace

LEVEL = 0.95
RUNS = 80
SLACK = 3 * math.sqrt(LEVEL * (1 - LEVEL) / RUNS)
SOME = {**contrasts(), "mean cost": mean_cost(1.0, 5.0)}


def read(drawn: Any, *, epsilon: str, rows: int | None) -> NoisyConfusion:
    mechanism = DiscreteLaplace.for_epsilon(
        Fraction(epsilon), l1_sensitivity=1 if rows is None else 2, dimension=4
    )
    return NoisyConfusion(drawn, mechanism, rows=rows, terms="")


def released(cells: Any, *, epsilon: str, rows: int | None, noise: Any) -> NoisyConfusion:
    """What is released of true (tp, fp, fn, tn)."""
    tp, fp, fn, tn = np.asarray(cells) + noise
    return read(np.array([tn, fp, fn, tp]), epsilon=epsilon, rows=rows)


def laplace(generator: np.random.Generator, scale: float, shape: Any) -> Any:
    p = math.exp(-1 / scale)
    return generator.geometric(1 - p, shape) - generator.geometric(1 - p, shape)


@pytest.mark.parametrize("rows", [None, 400])
def test_with_a_huge_epsilon_every_contrast_is_that_of_scikit_learn(rows: int | None) -> None:
    generator = np.random.default_rng(3)
    labels = generator.integers(0, 2, 400)
    called = np.where(generator.random(400) < 0.7, labels, 1 - labels)
    cells = reference.confusion_matrix(labels, called).ravel()  # tn, fp, fn, tp
    found = read(cells, epsilon="1000000", rows=rows)
    precision = reference.precision_score(labels, called)
    recall = reference.recall_score(labels, called)
    npv = reference.precision_score(labels, called, pos_label=0)
    positive, negative = reference.class_likelihood_ratios(labels, called)
    expected = {
        "balanced accuracy": reference.balanced_accuracy_score(labels, called),
        "Cohen's kappa": reference.cohen_kappa_score(labels, called),
        "Fowlkes-Mallows index": math.sqrt(precision * recall),
        "informedness": reference.balanced_accuracy_score(labels, called, adjusted=True),
        "markedness": precision + npv - 1,
        "Matthews correlation": reference.matthews_corrcoef(labels, called),
        "negative likelihood ratio": negative,
        "positive likelihood ratio": positive,
    }
    assert set(expected) == set(contrasts()), "a new contrast wants its line here"
    for name, value in expected.items():
        assert found.measures[name] == pytest.approx(value, abs=1e-9), name
        assert found.measures[name].noise_interval() == pytest.approx((value, value), abs=1e-6)
    wrong = (called != labels) * np.where(labels, 5.0, 1.0)
    assert found.cost(false_negative=5) == pytest.approx(wrong.mean(), abs=1e-9)


def population(prevalence: float, recall: float, specificity: float) -> Any:
    rest = 1 - prevalence
    right, left = np.array([recall, 1 - specificity]), np.array([1 - recall, specificity])
    return np.concatenate([right * [prevalence, rest], left * [prevalence, rest]])


def coverages(
    contrast: Contrast, shares: Any, *, rows: int, epsilon: str, public: bool
) -> tuple[float, float]:
    generator = np.random.default_rng([rows, int(1000 * Fraction(epsilon)), public])
    scale = (2 if public else 1) / float(Fraction(epsilon))
    true = float(contrast(shares))
    of_rows, of_all = [], []
    for _ in range(RUNS):
        cells = generator.multinomial(rows, shares)
        noise, known = laplace(generator, scale, 4), rows if public else None
        found = released(cells, epsilon=epsilon, rows=known, noise=noise)
        own = float(contrast(cells))
        measure = found.contrast(contrast)
        if not math.isnan(own):
            low, high = measure.noise_interval(LEVEL)
            of_rows.append(low - 1e-9 <= own <= high + 1e-9)
        low, high = measure.interval(LEVEL)
        of_all.append(low - 1e-9 <= true <= high + 1e-9)
    return float(np.mean(of_rows)), float(np.mean(of_all))


@pytest.mark.parametrize("public", [True, False], ids=["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("rows", "epsilon"), [(300, "1/4"), pytest.param(5000, "1", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "name",
    ["Matthews correlation", pytest.param("positive likelihood ratio", marks=pytest.mark.slow)],
)
@pytest.mark.slow
def test_contrasts_are_covered(name: str, rows: int, epsilon: str, public: bool) -> None:
    shares = population(0.2, 0.8, 0.85)
    of_rows, of_all = coverages(SOME[name], shares, rows=rows, epsilon=epsilon, public=public)
    assert of_rows >= LEVEL - SLACK
    assert of_all >= LEVEL - SLACK


@pytest.mark.parametrize("public", [True, False], ids=["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "name", ["balanced accuracy", pytest.param("markedness", marks=pytest.mark.slow)]
)
def test_noise_that_adds_to_the_few_that_are_found_is_not_believed(name: str, public: bool) -> None:
    generator, contrast = np.random.default_rng([7, public]), SOME[name]
    shares, rows = population(0.02, 0.15, 0.97), 300
    found = []
    for _ in range(300):
        cells = generator.multinomial(rows, shares)
        noise = laplace(generator, 8 if public else 4, 4)
        release = released(cells, epsilon="1/4", rows=rows if public else None, noise=noise)
        own = float(contrast(cells))
        low, high = release.contrast(contrast).noise_interval(LEVEL)
        if not math.isnan(own):
            found.append(low - 1e-9 <= own <= high + 1e-9)
    # .88 to .90 where the shortest interval of equal weights is taken.
    assert float(np.mean(found)) >= 0.925


@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False], ids=["replace-one", "add-remove"])
def test_a_perfect_model_is_covered_too(public: bool) -> None:
    shares = population(0.3, 1.0, 1.0)
    contrast = SOME["Matthews correlation"]
    of_rows, of_all = coverages(contrast, shares, rows=1000, epsilon="1/2", public=public)
    assert min(of_rows, of_all) >= LEVEL - SLACK


def test_the_same_numbers_have_the_same_intervals() -> None:
    ends = {read([70, 9, 11, 40], epsilon="1", rows=130).cohens_kappa.interval() for _ in range(3)}
    assert len(ends) == 1


def test_more_noise_makes_wider_intervals() -> None:
    drawn = [700, 90, 110, 400]
    for name, contrast in SOME.items():
        widths = []
        for epsilon in ("4", "1/2", "1/20"):
            measure = read(drawn, epsilon=epsilon, rows=1300).contrast(contrast)
            low, high = measure.noise_interval()
            widths.append(contrast.scaled(high) - contrast.scaled(low))
        assert widths[0] < widths[1] < widths[2], name


@pytest.mark.parametrize("drawn", [[0, 0, 0, 0], [-5, -9, 3, -2], [-40, 12, -70, -30]])
@pytest.mark.parametrize("rows", [None, 3])
def test_counts_that_noise_took_give_a_wide_interval_and_no_error(
    drawn: list[int], rows: int | None
) -> None:
    found = read(drawn, epsilon="1/5", rows=rows)
    for name, contrast in contrasts().items():
        measure = found.measures[name]
        low, high = measure.noise_interval()
        assert contrast.low <= low <= measure.value <= high <= contrast.high
        assert contrast.scaled(high) - contrast.scaled(low) > 0.7, name


@pytest.mark.parametrize("costs", [(-1, 1), (0, 0), (float("nan"), 1), ("dear", 1)])
def test_costs_that_are_none_are_refused(costs: Any) -> None:
    found = read([7, 9, 11, 40], epsilon="1", rows=None)
    with pytest.raises(ArgumentError, match="must be at least 0, and not both 0"):
        found.cost(false_positive=costs[0], false_negative=costs[1])


@pytest.mark.parametrize(("rows", "epsilon"), [(None, "1/20"), (200, "1/10")])
@pytest.mark.parametrize("drawn", [[100, 40, 30, 30], [200, 0, 0, 0], [230, -40, -30, 40]])
def test_costs_of_200_rows_at_a_low_price_say_nothing_wherever_noise_takes_them(
    drawn: list[int], rows: int | None, epsilon: str
) -> None:
    found = read(drawn, epsilon=epsilon, rows=rows)
    for each in (found.cost(), found.cost(false_negative=5), found.accuracy, found.prevalence):
        assert not each.informative, each.name
        assert "no information at this price" in str(each)
        assert each.as_dict()["informative"] is False
    assert read(drawn, epsilon="1", rows=rows).cost(false_negative=5).informative


@pytest.mark.parametrize("noisy", [[3, 5, -1, 40], [3, 5, -1, 60], [-20, 3, 9, 15], [2, 30, 1, 3]])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_counts_with_a_known_total_are_laid_out_as_all_of_them_weighed(
    noisy: list[int], scale: float
) -> None:
    rows = 44
    a, b, c = np.meshgrid(*[np.arange(rows + 1)] * 3, indexing="ij")
    every = np.stack([a, b, c, rows - a - b - c], axis=-1).reshape(-1, 4)
    every = every[every[:, 3] >= 0]
    weights = np.exp(-np.abs(every - noisy).sum(axis=1) / scale)
    weights /= weights.sum()
    mean = weights @ every
    spread = (every - mean).T @ ((every - mean) * weights[:, None])
    found = laid_out(noisy, scale, rows, _cube())
    assert np.all(found.sum(axis=1) == rows)
    assert found.min() >= 0
    assert found.mean(axis=0) == pytest.approx(mean, abs=0.03 * spread.max() ** 0.5)
    assert np.cov(found.T) == pytest.approx(spread, abs=0.03 * spread.max())


def test_gamma_quantiles_have_the_share_below_that_they_were_asked_for() -> None:
    from scipy.special import gammainc

    from heldout.intervals.joint import _gamma_quantile

    shape = np.repeat(np.array([0.5, 1.5, 7.5, 23.5, 24.5, 3000.5, 1e9 + 0.5]), 99)
    share = np.tile(np.linspace(0.0005, 0.9995, 99), 7)
    off = np.abs(gammainc(shape, _gamma_quantile(shape, share)) - share)
    assert off.max() < 3e-4
    assert off[shape < 24].max() < 1e-9
