"""What is read off a residual plot for free, and how often it is right."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.questions.regression.readings import (
    Sum,
    bands,
    mean_by_prediction,
    spread_by_prediction,
    tail_quantile,
)
from heldout.questions.regression.table import ResidualTable
from heldout.questions.regression.verdict import Readings, _weights, curvature, fan, trend

LIMITS = {
    "ideal": ((-4.0, 4.0), (0.0, 52.0)),
    "heteroscedastic": ((-16.0, 16.0), (-2.0, 54.0)),
    "nonlinear": ((-6.0, 8.0), (-6.0, 68.0)),
}
RUNS = 300
Y_OF = {
    "ideal": lambda x, noise: x + noise,
    "heteroscedastic": lambda x, noise: x + noise * np.sqrt(x),
    "nonlinear": lambda x, noise: x + 0.01 * x**2 + noise,
}


def fitted(kind: str, rows: int, random: Any) -> tuple[Any, Any]:
    """Residuals and predictions of a line by least squares: Chen et al. 2016, section III-C."""
    x = random.uniform(1, 50, rows)
    y = Y_OF[kind](x, random.normal(0, 1, rows))
    predicted = np.polyval(np.polyfit(x, y, 1), x)
    return y - predicted, predicted


def exact(kind: str, rows: int, random: Any, shape: tuple[int, int] = (8, 8)) -> Any:
    """Counts of a simulated data set in a grid, with its edges."""
    residual, predicted = LIMITS[kind]
    edges = [np.linspace(*predicted, shape[1] + 1), np.linspace(*residual, shape[0] + 1)]
    counts, _, _ = np.histogram2d(*fitted(kind, rows, random), bins=[edges[1], edges[0]])
    return counts, edges


def noisy(counts: Any, edges: Any, *, scale: int, rows: int, random: Any) -> ResidualTable:
    chance = -np.expm1(-1 / scale)
    noise = random.geometric(chance, counts.shape) - random.geometric(chance, counts.shape)
    return ResidualTable(
        predicted_edges=edges[0],
        residual_edges=edges[1],
        noisy=counts + noise,
        outside=float(rows - counts.sum()),
        rows=rows,
        scale=Fraction(scale),
    )


def table(kind: str, *, rows: int = 5_000, scale: int = 2, seed: int = 1) -> ResidualTable:
    random = np.random.default_rng(seed)
    counts, edges = exact(kind, rows, random, (12, 12))
    return noisy(counts, edges, scale=scale, rows=rows, random=random)


def test_ideal_residuals_have_mean_0_and_one_spread():
    readings = Readings(table("ideal"))
    assert np.abs(readings.mean_by_prediction.values).max() < 0.3
    assert np.abs(readings.spread_by_prediction.values - 1).max() < 0.3
    assert str(readings.verdict) == "No sign of curvature, a fan or a trend at this epsilon."


def test_a_fan_is_told_with_its_direction():
    readings = Readings(table("heteroscedastic"))
    assert readings.verdict.faults == ("fan",)
    assert str(readings.verdict).startswith("Residuals fan out: variance grows with the prediction")
    spread = readings.spread_by_prediction
    assert spread.values[-2] > 2 * spread.values[0]
    closing = table("heteroscedastic")
    turned = ResidualTable(
        predicted_edges=-closing.predicted_edges[::-1],
        residual_edges=closing.residual_edges,
        noisy=closing.noisy[:, ::-1],
        outside=0.0,
        rows=5_000,
        scale=Fraction(2),
    )
    assert "fan in" in str(Readings(turned).verdict)


def test_a_curve_is_told_with_its_direction():
    readings = Readings(table("nonlinear"))
    assert readings.verdict.faults == ("curvature",)
    assert "too low at both ends" in str(readings.verdict)
    means = readings.mean_by_prediction.values
    assert means[0] > 1
    assert means[-1] > 1
    assert means[len(means) // 2] < -1


def test_a_slope_is_a_trend():
    random = np.random.default_rng(4)
    x, r = random.uniform(0, 50, 4_000), random.normal(0, 1, 4_000)
    edges = [np.linspace(0, 50, 13), np.linspace(-6, 6, 13)]
    counts, _, _ = np.histogram2d(r - 0.03 * (x - 25), x, bins=[edges[1], edges[0]])
    found = Readings(noisy(counts, edges, scale=2, rows=4_000, random=random)).verdict
    assert found.faults == ("trend",)
    assert "the more it is too high" in str(found)


def test_a_small_fault_of_many_rows_is_called_slight():
    random = np.random.default_rng(14)
    x, z = random.uniform(0, 50, 200_000), random.normal(0, 1, 200_000)
    edges = [np.linspace(0, 50, 13), np.linspace(-6, 6, 13)]
    counts, _, _ = np.histogram2d(z * (1 + 0.001 * x), x, bins=[edges[1], edges[0]])
    found = Readings(noisy(counts, edges, scale=2, rows=200_000, random=random)).verdict
    assert "variance grows with the prediction (slightly, +0.0" in str(found)


def test_with_little_to_see_it_is_too_noisy_to_tell():
    found = Readings(table("heteroscedastic", rows=50, scale=200)).verdict
    assert str(found) == "Too noisy to tell: no score differs clearly from chance at this epsilon."
    assert found.faults == ()


def test_bounds_that_are_far_too_wide_are_too_coarse_to_tell():
    random = np.random.default_rng(3)
    edges = [np.linspace(-4, 60, 19), np.linspace(-2048, 2048, 25)]
    found = fitted("heteroscedastic", 5_000, random)
    counts, _, _ = np.histogram2d(*found, bins=[edges[1], edges[0]])
    found = Readings(noisy(counts, edges, scale=4, rows=5_000, random=random)).verdict
    assert str(found).startswith("Too coarse to tell: nearly all rows lie in a few cells")


def without_scale(apart):
    """The same counts, as of a method whose cells share their noise."""
    return ResidualTable(
        predicted_edges=apart.predicted_edges,
        residual_edges=apart.residual_edges,
        noisy=apart.noisy,
        outside=0.0,
        rows=5_000,
        scale=None,
        deviation=apart.cell_deviation,
        outside_scale=Fraction(2),
        unbiased=False,
    )


def test_a_method_that_joins_cells_gives_no_verdict():
    joined = without_scale(table("heteroscedastic"))
    assert str(Readings(joined).verdict).startswith("No verdict")
    assert Readings(joined).verdict.faults == ()


@pytest.mark.parametrize("counts", [np.zeros((4, 5)), np.eye(1), np.full((3, 1), 9.0)])
def test_empty_and_narrow_tables_are_read_too(counts):
    edges = [np.linspace(0, 1, counts.shape[1] + 1), np.linspace(-1, 1, counts.shape[0] + 1)]
    random = np.random.default_rng(2)
    readings = Readings(noisy(counts, edges, scale=1, rows=10, random=random))
    content = readings.as_dict()
    assert not readings.verdict.faults
    for name in ("mean_by_prediction", "spread_by_prediction"):
        assert np.isfinite(content[name]["values"]).all()
        assert np.isfinite(content[name]["interval"]).all()


def test_noise_that_hangs_together_gives_wider_intervals():
    apart = table("ideal")
    together = without_scale(apart)
    for one, two in zip(
        mean_by_prediction(apart).noise_interval(), mean_by_prediction(together).noise_interval(),
        strict=True,
    ):  # fmt: skip
        if len(one) == len(two):
            assert (np.abs(two) >= np.abs(one) - 1e-9).mean() > 0.5
    assert np.ptp(fan(together).noise_interval()) > np.ptp(fan(apart).noise_interval())


def test_the_tail_lies_between_normal_and_laplace():
    assert tail_quantile(0.95) == pytest.approx(1.959964)
    assert tail_quantile(0.99, kurtosis=3) >= -np.log(0.01) / np.sqrt(2) - 1e-9
    assert tail_quantile(0.95, of=3) > tail_quantile(0.95)


def test_a_sum_knows_its_two_errors():
    random = np.random.default_rng(8)
    counts, edges = exact("ideal", 2_000, random)
    weights = np.arange(64.0).reshape(8, 8)
    truth = (weights * counts).sum()
    draws = [
        Sum(noisy(counts, edges, scale=10, rows=2_000, random=random), weights) for _ in range(400)
    ]
    spread = np.std([each.value - truth for each in draws])
    # 400 draws: the ratio strays from 1 by 0.035 (one deviation); 0.2 is more than five.
    assert spread == pytest.approx(draws[0].noise_variance ** 0.5, rel=0.2)


def _banded(counts: Any, starts: Any, edges: Any) -> tuple[Any, Any, Any]:
    middle = ((edges[1:] + edges[:-1]) / 2)[:, None]
    held = np.add.reduceat(counts, starts[:-1], axis=1)
    rows = np.maximum(held.sum(axis=0), 1e-12)
    mean = (held * middle).sum(axis=0) / rows
    width = np.diff(edges)[:, None] ** 2 / 12
    variance = (held * ((middle - mean) ** 2 - width)).sum(axis=0) / rows
    return rows, mean, np.sqrt(np.maximum(variance, 0))


def _covered(interval: tuple[Any, Any], truth: Any) -> Any:
    low, high = interval
    return (low <= truth) & (truth <= high)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scale"), [("ideal", 40), ("heteroscedastic", 3)])
def test_intervals_cover_what_they_say(kind, scale):
    """At 95% each. Of RUNS at a true 0.93, fewer than 0.87 are covered with chance below 3e-5."""
    random = np.random.default_rng(21)
    rows = 4_000
    many, edges = exact(kind, 1_000_000, random)
    population = many / 1_000_000
    hits: dict[str, list[Any]] = {}
    for _ in range(RUNS):
        counts, edges = exact(kind, rows, random)
        made = noisy(counts, edges, scale=scale, rows=rows, random=random)
        starts = bands(made)
        held, *here = _banded(counts, starts, edges[1])
        _, *there = _banded(population, starts, edges[1])
        byband = (mean_by_prediction(made), spread_by_prediction(made))
        for name, each, own, of_all in zip(("mean", "spread"), byband, here, there, strict=True):
            one = int(random.integers(len(held)))  # bands of one plot are not independent
            hits.setdefault(f"{name}, noise", []).append(_covered(each.noise_interval(), own)[one])
            hits.setdefault(name, []).append(_covered(each.interval(), of_all)[one])
        scores = ((curvature, 2, False), (fan, 1, True), (trend, 1, False))
        for score, degree, sizes in scores:
            found = score(made)
            weights = _weights(made, degree=degree, sizes=sizes)
            hits.setdefault(f"{found.name}, noise", []).append(
                _covered(found.noise_interval(), weights.correlation(counts))
            )
            hits.setdefault(found.name, []).append(
                _covered(found.interval(), weights.correlation(population))
            )
    low = {name: np.mean(each) for name, each in hits.items() if np.mean(each) < 0.87}
    assert not low
    # And they are not wide for nothing: the noise interval of the mean misses now and then.
    assert np.mean(hits["mean, noise"]) < 1


@pytest.mark.slow
@pytest.mark.parametrize("scale", [3, 45])
def test_faults_are_seen_and_false_alarms_are_rare(scale):
    """False alarms: at most 5% are promised; 11% of 300 has chance below 3e-5 at 5%."""
    random = np.random.default_rng(5)
    seen = {}
    for kind in LIMITS:
        faults = []
        for _ in range(RUNS if kind == "ideal" else 40):
            counts, edges = exact(kind, 5_000, random)
            made = noisy(counts, edges, scale=scale, rows=5_000, random=random)
            faults.append(Readings(made).verdict.faults)
        seen[kind] = faults
    assert np.mean([bool(each) for each in seen["ideal"]]) < 0.11
    assert np.mean(["curvature" in each for each in seen["nonlinear"]]) > 0.9
    assert np.mean(["fan" in each for each in seen["heteroscedastic"]]) > (
        0.9 if scale == 3 else 0.05
    )


@pytest.mark.parametrize("unit", [1e-140, 1.0, 1e150])
def test_readings_have_the_unit_of_the_data_and_nothing_overflows(unit):
    counts, edges = exact("heteroscedastic", 5_000, np.random.default_rng(6), (12, 12))
    one, other = (
        Readings(noisy(counts, [each * size for each in edges], scale=2, rows=5_000,
                       random=np.random.default_rng(7)))
        for size in (1.0, unit)
    )  # fmt: skip
    assert other.fan == pytest.approx(one.fan)
    for name in ("mean_by_prediction", "spread_by_prediction"):
        first, second = getattr(one, name), getattr(other, name)
        assert second.values == pytest.approx(unit * first.values)
        assert np.allclose(np.array(second.interval()) / unit, first.interval())


def test_tables_of_mere_noise_show_nothing():
    """Whatever the noise, no number overflows and nothing is said to be seen."""
    random = np.random.default_rng(9)
    for _ in range(100):
        made = noisy(np.zeros((6, 4)), [np.linspace(0, 1, 5), np.linspace(-1, 1, 7)],
                     scale=int(random.integers(1, 5_000)), rows=int(random.integers(1, 300)),
                     random=random)  # fmt: skip
        content = Readings(made).as_dict()
        assert np.isfinite(content["verdict"]["scores"]["fan"]["interval"]).all()
    lone = np.zeros((6, 4))
    lone[2, 1] = 1.0  # all rows in one cell: no score can exist
    made = ResidualTable(
        predicted_edges=np.linspace(0, 1, 5), residual_edges=np.linspace(-1, 1, 7), noisy=lone,
        outside=0.0, rows=1, scale=Fraction(100),
    )  # fmt: skip
    assert curvature(made).interval() == (-1.0, 1.0)


def cut_tail(*, slope: float, bound: float = 3.0, rows: int = 40_000) -> Any:
    """Residuals with mean 0 everywhere (less a slope), a long lower tail at low predictions."""
    random = np.random.default_rng(20)
    x = random.uniform(0, 10, rows)
    share = 0.09 - 0.008 * x
    tail = np.where(random.uniform(0, 1, rows) < share, -1 - random.exponential(2, rows), 0.0)
    r = tail + 3 * share + random.normal(0, 0.6, rows) + slope * (x - 5)
    edges = [np.linspace(0, 10, 13), np.linspace(-bound, bound, 25)]
    counts, _, _ = np.histogram2d(r, x, bins=[edges[1], edges[0]])
    return Readings(noisy(counts, edges, scale=2, rows=rows, random=random))


def test_a_lean_that_a_cut_tail_can_make_is_said_to_be_one():
    readings = cut_tail(slope=0.0)
    assert readings.trend.leans
    assert not readings.trend.seen
    assert readings.verdict.faults == ()
    assert readings.verdict.findings["trend"].answer == "cut"
    assert "the bounds cut 1.7% of the rows" in str(readings.verdict)
    assert readings.p_values["RESET"] > 0.05


def test_a_trend_that_no_cut_makes_is_still_seen():
    assert cut_tail(slope=-0.1).verdict.faults == ("trend",)


def test_without_a_cut_the_lean_of_cut_residuals_is_gone():
    assert cut_tail(slope=0.0, bound=24.0).verdict.faults == ()


def shifted(by: float, *, bound: float = 12.0, rows: int = 5_000) -> Any:
    """Residuals as wide as 1 around `by`, with no shape."""
    random = np.random.default_rng(21)
    x, r = random.uniform(0, 10, rows), random.normal(by, 1, rows)
    edges = [np.linspace(0, 10, 13), np.linspace(-bound, bound, 41)]
    counts, _, _ = np.histogram2d(r, x, bins=[edges[1], edges[0]])
    return Readings(noisy(counts, edges, scale=2, rows=rows, random=random)).verdict


def test_predictions_that_are_off_everywhere_are_said_to_be():
    found = str(shifted(8.0))
    assert found.startswith("Predictions are too low by about 7.9 on average (7.7 to 8.2); no sign")
    assert str(shifted(-8.0)).startswith("Predictions are too high by about 8")
    assert shifted(8.0).as_dict()["offset"].startswith("predictions are too low")


def test_a_small_offset_and_one_that_a_cut_can_make_are_not_told():
    assert shifted(0.1).offset == ""
    assert cut_tail(slope=0.0).verdict.offset == ""
    assert shifted(1.0, bound=1.5).offset == ""  # three in ten rows lie beyond the bounds


@pytest.mark.parametrize("share", [0.9, 1.0])
def test_neither_a_cut_tail_nor_a_wide_cell_is_an_offset(share):
    """Residuals with mean 0 and a very long upper tail: cut at the bound, or all in a few cells."""
    random = np.random.default_rng(22)
    x, r = random.uniform(0, 10, 20_000), random.lognormal(0, 1.5, 20_000) - np.exp(1.125)
    bound = float(np.quantile(np.abs(r), share))
    edges = [np.linspace(0, 10, 11), np.linspace(-bound, bound, 19)]
    counts, _, _ = np.histogram2d(r, x, bins=[edges[1], edges[0]])
    found = Readings(noisy(counts, edges, scale=4, rows=20_000, random=random)).verdict
    assert found.offset == ""


def beyond_bounds(*, bend: float, tails: bool, bound: float = 2, seed: int = 24) -> Any:
    """Normal residuals, cut at two deviations; rows beyond are counted by prediction or not."""
    random = np.random.default_rng(seed)
    x = random.uniform(0, 10, 5_000)
    r = random.normal(size=5_000) + bend * ((x - 5) ** 2 - 25 / 3) / 7.45
    edges = [np.linspace(0, 10, 13), np.linspace(-bound, bound, 17)]
    around = np.array([-2 * bound, *edges[1], 2 * bound])
    counts, _, _ = np.histogram2d(r, x, bins=[around, edges[0]])
    drawn = counts + random.laplace(0, 4, counts.shape)
    rest = 5_000 - counts.sum() + random.laplace(0, 4)
    made = ResidualTable(
        predicted_edges=edges[0], residual_edges=edges[1], noisy=drawn[1:-1], rows=5_000,
        outside=rest + drawn[[0, -1]].sum(), outside_scale=Fraction(20), scale=Fraction(4),
        tails=drawn[[0, -1]] if tails else None,
    )  # fmt: skip
    return Readings(made)


def test_rows_counted_beyond_the_bounds_leave_less_to_fear():
    counted, feared = (beyond_bounds(bend=0.15, tails=tails).curvature for tails in (True, False))
    assert counted.deviations == feared.deviations
    assert counted.unexplained > 1.3 * feared.unexplained
    assert beyond_bounds(bend=0.15, tails=True).verdict.faults == ("curvature",)
    assert beyond_bounds(bend=0.0, tails=True).verdict.faults == ()


def test_with_wide_bounds_rows_far_out_count_only_against_a_lean():
    """Of these plots 15 would show the bend if all cells counted."""
    plots = [beyond_bounds(bend=0.1, tails=True, bound=5, seed=seed).verdict for seed in range(40)]
    assert sum(plot.faults == ("curvature",) for plot in plots) >= 20
    said = [str(plot) for plot in plots if plot.findings["curvature"].answer == "cut"]
    assert all("so few rows far out that noise hides them can make up for it" in s for s in said)
    flat = [beyond_bounds(bend=0.0, tails=True, bound=5, seed=seed) for seed in range(40)]
    assert sum(bool(plot.verdict.faults) for plot in flat) <= 2
