"""DAWA's own second stage: what a row loses, the fit and its stated noise."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.kernel.curves.published import DawaLi2014
from heldout.kernel.events import Event, price
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.dawa import GreedyTree, prefix_gram

SIZES = [(1,), (3, 1), (1, 1, 1, 1), (5, 1, 1, 2, 8), (1,) * 37, tuple(range(1, 30))]


def tree(sizes: Any, *, epsilon: str = "1", moved: int = 2) -> GreedyTree:
    return GreedyTree(bins=len(sizes), epsilon=Fraction(epsilon), moved=moved, sizes=tuple(sizes))


@pytest.mark.parametrize("sizes", SIZES, ids=len)
def test_the_weights_of_every_path_from_root_to_leaf_sum_to_one(sizes: Any) -> None:
    weights = tree(sizes).weights()
    for leaf in range(len(sizes)):
        path = [w for (first, end), w in weights.items() if first <= leaf < end]
        assert sum(path) == 1
        assert all(w >= 0 for w in path)
    assert len(weights) == 2 * len(sizes) - 1


@pytest.mark.parametrize("sizes", SIZES, ids=len)
@pytest.mark.parametrize("moved", [1, 2])
def test_a_row_loses_epsilon_whatever_leaf_it_is_in(
    sizes: Any, moved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the scales that are drawn from, for all ways in which `moved` rows come or go."""
    drawn: list[tuple[int, Fraction]] = []

    def noted(law: DiscreteLaplace, sealed: Any) -> Any:
        exact = sealed._content
        drawn.extend((int(each), law.scale) for each in exact)
        return exact

    monkeypatch.setattr(DiscreteLaplace, "sample", noted)
    made = tree(sizes, epsilon="1/2", moved=moved)
    made.draw(np.zeros(len(sizes), dtype=int))
    before, drawn = drawn, []
    worst = Fraction(0)
    for leaf in range(len(sizes)):
        drawn.clear()
        made.draw(np.eye(len(sizes), dtype=int)[leaf] * moved)
        lost = sum(
            abs(after - was) / scale for (was, _), (after, scale) in zip(before, drawn, strict=True)
        )
        worst = max(worst, Fraction(lost))
    assert worst == Fraction(1, 2)
    assert price(Event.composed(made.events(classes=2))).as_dict()["epsilon"] == "1/2"


@pytest.mark.parametrize("sizes", SIZES, ids=len)
def test_the_fit_is_least_squares_and_its_noise_is_as_stated(
    sizes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(4)
    exact = random.integers(0, 50, len(sizes))
    scales: list[float] = []

    def noisy(law: DiscreteLaplace, sealed: Any) -> Any:
        value = sealed._content + np.rint(random.normal(0, float(law.scale), law.dimension))
        scales.extend([float(law.scale)] * law.dimension)
        return value.astype(int)

    monkeypatch.setattr(DiscreteLaplace, "sample", noisy)
    made = tree(sizes)
    told = made._noisy(np.append(0, np.cumsum(exact)))
    monkeypatch.setattr(GreedyTree, "_noisy", lambda *_: told)
    found = made.draw(exact)
    rows = np.array([[a <= b < z for b in range(len(sizes))] for a, z in told], float)
    value, scale = np.array(list(told.values())), np.array(scales)
    design = rows / scale[:, None]
    expected = np.linalg.lstsq(design, value / scale, rcond=None)[0]
    np.testing.assert_allclose(found.counts, expected, rtol=1e-6, atol=1e-6)
    covariance = np.linalg.inv(design.T @ design)
    ratio = found.bin_deviation / np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    above = [np.sqrt(covariance[i:, i:].sum()) for i in range(len(sizes))]
    np.testing.assert_allclose(found.above_deviation[:-1] / above, ratio[0], rtol=1e-6)
    assert found.above_deviation[-1] == 0


def test_the_workload_is_all_prefix_sums() -> None:
    sizes = (2, 1, 4)
    cells = [np.clip((j - start) / size, 0, 1) for j in range(1, 8)
             for start, size in zip((0, 2, 3), sizes, strict=True)]  # fmt: skip
    asked = np.array(cells).reshape(7, 3)
    np.testing.assert_allclose(prefix_gram(sizes), asked.T @ asked)


def test_prefix_sums_are_better_than_with_all_weight_on_the_leaves() -> None:
    sizes = (1,) * 256
    made = tree(sizes)
    _, covariance = made._plan
    error = float((prefix_gram(sizes) * covariance).sum())
    assert error < 0.4 * float(np.trace(prefix_gram(sizes)))


def test_dawa_as_printed_prices_both_stages() -> None:
    made = DawaLi2014(bins=32, epsilon=Fraction(1, 3), moved=2)
    assert price(Event.composed(made.events(classes=1))).as_dict()["epsilon"] == "1/3"
    edges = np.array([0, 4, 5, 32])
    stage = made.second_stage(edges)
    assert isinstance(stage, GreedyTree)
    assert (stage.sizes, stage.epsilon) == ((4, 1, 27), Fraction(1, 4))
    with pytest.raises(ArgumentError, match="sizes"):
        GreedyTree(bins=2, epsilon=Fraction(1), moved=1, sizes=(1,))
