"""Every curve method: its price, its refusals, and a valid table whatever the rows are."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.intervals.readings import plain_curve
from heldout.kernel import Loss
from heldout.kernel.curves.published import COUNTS, quantiles
from heldout.kernel.curves.registry import METHODS, method
from heldout.kernel.events import price
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.tables import NoisyTable, independent_noise, laplace_deviation
from heldout.kernel.statistic import Sealed

POINTS = 257
REPLACE = Protection(neighbours="replace-one")
PROTECTIONS = [
    REPLACE,
    Protection(neighbours="add-remove"),
    Protection(neighbours="replace-one", unit=True, rows_per_unit=4),
]
SMALL: dict[str, dict[str, Any]] = {
    "laplace": {},
    "fixed-space": {"thresholds": 32},
    "recursive-medians": {"levels": 4},
    "hierarchical-quantile": {"quantiles": 8},
    "stoddard-2014-laplace": {},
    "stoddard-2014-priroc": {"levels": 4},
    "chen-2016-priroc": {"levels": 4},
    "chen-2016-priroc-fix": {"thresholds": 32},
}
COMBINED = [
    *((name, {}) for name in list(SMALL)[3:]),
    ("chen-2016-priroc", {"counts": "hierarchical"}),
    *((name, {"counts": counts}) for name in list(SMALL)[:3] for counts in COUNTS),
    ("fixed-space", {"split": "joint"}),
    ("laplace", {"split": "halves"}),
    ("recursive-medians", {"split": "joint", "counts": "dawa"}),
]


def _method(name: str, options: dict[str, Any], **changed: Any) -> Any:
    arguments: dict[str, Any] = {
        "epsilon": Fraction(1),
        "protection": REPLACE,
        "points": POINTS,
        "rows": None,
    }
    return method(name, **{**arguments, **SMALL[name], **options, **changed})


def _table(labels: Any, places: Any) -> Sealed[Any]:
    counts = np.zeros(2 * POINTS, dtype=np.int64)
    np.add.at(counts, np.asarray(labels, int) * POINTS + np.asarray(places, int), 1)
    return Sealed(counts)


@pytest.mark.parametrize(("name", "options"), COMBINED, ids=str)
@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
def test_the_price_of_a_method_is_epsilon(
    name: str, options: dict[str, Any], protection: Protection
) -> None:
    for epsilon in (Fraction(1, 100), Fraction(3, 7), Fraction(2)):
        made = _method(name, options, protection=protection, epsilon=epsilon)
        assert price(made.event()) == Loss.pure(epsilon)
        assert made.describe()["name"] == name


DEGENERATE = {
    "no row": ([], []),
    "one row": ([1], [100]),
    "one class": ([0] * 50, list(range(50))),
    "all scores equal": ([0, 1] * 30, [POINTS - 1] * 60),
    "two scores": ([0, 1] * 30, [0, 256] * 30),
}


@pytest.mark.parametrize(("name", "options"), COMBINED, ids=str)
@pytest.mark.parametrize("rows", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(100)], ids=str)
def test_every_input_gives_a_valid_table_and_curve(
    name: str, options: dict[str, Any], rows: Any, epsilon: Fraction
) -> None:
    table = _method(name, options, epsilon=epsilon).sample(_table(*rows))
    assert table.points == POINTS
    assert table.noise.bin_deviation.shape == (2, table.bins)
    assert table.noise.above_deviation.shape == (2, table.bins + 1)
    assert np.isfinite(table.noise.above_deviation).all()
    assert (table.noise.bin_deviation > 0).all()
    curve = plain_curve(table, score_range=(0.0, 1.0))
    for rate in (curve.fpr, curve.tpr):
        assert (rate[0], rate[-1]) == (0, 1)
        assert (np.diff(rate) >= 0).all()
    assert (np.diff(curve.thresholds) < 0).all()
    precision = curve.precision()
    assert ((precision >= 0) & (precision <= 1)).all()


@pytest.mark.parametrize(("name", "options"), COMBINED, ids=str)
def test_with_much_budget_the_curve_is_the_true_one(name: str, options: dict[str, Any]) -> None:
    generator = np.random.default_rng(8)
    labels = generator.random(20_000) < 0.3
    places = np.clip(generator.normal(100 + 50 * labels, 40), 0, 256).astype(int)
    table = _method(name, options, epsilon=Fraction(1000)).sample(_table(labels, places))
    curve = plain_curve(table, score_range=(0.0, 1.0))
    above = [np.mean(places[~labels, None] < places[labels][None, :500])]
    assert curve.area == pytest.approx(above[0], abs=0.03)
    assert table.positives.sum() == pytest.approx(labels.sum(), rel=0.01)


def test_halves_have_twice_the_noise_of_a_joint_table_at_the_same_price() -> None:
    halves, joint = (_method("fixed-space", {"split": each}) for each in ("halves", "joint"))
    assert halves.counts.scale == 2 * joint.counts.scale
    assert price(halves.event()) == price(joint.event())


def test_charging_by_class_charges_twice_what_any_replaced_row_loses() -> None:
    """Exhaustive: the loss is the L1 distance over the scale, for both classes together."""
    made = _method("fixed-space", {"counts": "flat", "thresholds": 3})
    lost = set()
    for gone in range(6):
        for new in range(6):
            change = np.zeros(6)
            change[gone] -= 1
            change[new] += 1
            lost.add(float(np.abs(change).sum() / made.counts.scale))
    assert max(lost) == 0.5


def test_flat_counts_state_their_scale_and_others_do_not() -> None:
    rows = _table([0, 1], [3, 200])
    flat = _method("fixed-space", {"counts": "flat"}).sample(rows).noise
    assert flat.scale == 4
    assert flat.bin_deviation[0, 0] == pytest.approx(laplace_deviation(Fraction(4)))
    assert _method("fixed-space", {"counts": "wavelet"}).sample(rows).noise.scale is None
    assert not _method("fixed-space", {"counts": "dawa"}).sample(rows).noise.unbiased


def test_quantiles_of_exact_leaves_are_the_leaves_that_hold_them() -> None:
    generator = np.random.default_rng(2)
    leaves = generator.integers(0, 9, 64).astype(float)
    levels = np.linspace(0.01, 0.99, 37)
    expected = np.searchsorted(np.cumsum(leaves), levels * leaves.sum())
    np.testing.assert_array_equal(quantiles(leaves, levels, branching=2), expected)
    np.testing.assert_array_equal(quantiles(leaves, levels, branching=4), expected)


def test_refusals_name_what_is_known() -> None:
    with pytest.raises(ArgumentError, match=r"method must be one of .*laplace"):
        method("bayes", epsilon=Fraction(1), protection=REPLACE, points=3)
    with pytest.raises(ArgumentError, match="options of laplace must be among counts"):
        _method("laplace", {"bins": 3})
    with pytest.raises(ArgumentError, match="counts must be one of"):
        _method("laplace", {"counts": "many"})
    with pytest.raises(ArgumentError, match="split must be"):
        _method("laplace", {"split": "thirds"})
    with pytest.raises(ArgumentError, match="epsilon"):
        _method("laplace", {}, epsilon=Fraction(0))
    with pytest.raises(ArgumentError, match="share"):
        _method("recursive-medians", {"share": 1})
    with pytest.raises(ArgumentError, match="quantiles"):
        _method("hierarchical-quantile", {"quantiles": 1})
    with pytest.raises(ArgumentError, match="points must match the score table"):
        _method("laplace", {}).sample(Sealed(np.zeros(4)))
    with pytest.raises(ArgumentError, match="counts must be one of dawa, hierarchical"):
        _method("chen-2016-priroc", {"counts": "flat"})
    with pytest.raises(ArgumentError, match="share"):
        _method("stoddard-2014-priroc", {"share": 0})
    assert {*SMALL, "heldout"} == set(METHODS)


def test_what_is_printed_is_what_is_drawn() -> None:
    """The constants of the papers: 2t + 1, 8 S/epsilon, a fifth, halves, 2^10 thresholds."""
    added = Protection(neighbours="add-remove")
    shared: dict[str, Any] = {"epsilon": Fraction(1), "points": POINTS, "rows": None}
    laplace = method("stoddard-2014-laplace", protection=added, **shared)
    assert laplace.counts.scale == 2 * 10 + 1  # type: ignore[attr-defined]
    first: Any = method("stoddard-2014-priroc", protection=added, **shared)
    each = Fraction(1, 5) / 10  # epsilon_1/k
    assert (first.edges.median.a, first.edges.median.beta) == (each / 8, each / 2)
    assert (first.counts.name, first.counts.scale) == ("wavelet", 11 / Fraction(2, 5))
    second: Any = method("chen-2016-priroc", protection=REPLACE, **shared)
    half = Fraction(1, 5) / 10 / 2  # gamma/2
    assert (second.edges.median.a, second.edges.median.beta) == (half / 8, half / 2)
    assert second.counts.epsilon == Fraction(2, 5)
    assert (second.counts.share, second.counts.penalty) == (Fraction(1, 4), 0)
    assert second.edges.most_bins == 2**10
    fixed: Any = method("chen-2016-priroc-fix", protection=REPLACE, **shared)
    assert (fixed.edges.bins, fixed.counts.epsilon) == (2**10, Fraction(1, 2))


def test_a_table_refuses_edges_that_do_not_rise_and_counts_of_another_length() -> None:
    noise = independent_noise(Fraction(1), bins=2)
    for edges in ([0, 2, 2], [1, 2, 3], [0]):
        with pytest.raises(ArgumentError, match="edges"):
            NoisyTable(edges=edges, negatives=[0, 0], positives=[0, 0], noise=noise)
    with pytest.raises(ArgumentError, match="positives"):
        NoisyTable(edges=[0, 1, 2], negatives=[0, 0], positives=[0], noise=noise)
