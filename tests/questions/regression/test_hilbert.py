"""DAWA on Hilbert's curve: the order, the joint loss, and what it keeps of a picture."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.kernel import Loss, price
from heldout.kernel.regression import HilbertDawa, hilbert_order
from heldout.kernel.statistic import Sealed


@pytest.mark.parametrize("side", [1, 2, 4, 8, 64])
def test_the_order_visits_each_cell_once_and_steps_to_a_neighbour(side: int) -> None:
    order = hilbert_order(side)
    assert sorted(order.tolist()) == list(range(side * side))
    down, across = np.divmod(order, side)
    steps = np.abs(np.diff(down)) + np.abs(np.diff(across))
    assert steps.tolist() == [1] * (side * side - 1)


@pytest.mark.parametrize("moved", [1, 2, 4])
def test_the_exact_loss_of_a_cell_and_the_outside_together_is_within_the_claim(moved: int) -> None:
    """One cell has one partition, so both noises are discrete Laplace and the law is explicit."""
    dawa = HilbertDawa(side=1, epsilon=Fraction(1), moved=moved)
    bucket = dawa.buckets.bucket_epsilon / moved
    edge = 1 / dawa.edge.scale
    worst = max(
        inside * float(bucket) + outside * float(edge)
        for inside, outside in itertools.product(range(moved + 1), repeat=2)
        if inside + outside <= moved
    )
    # The partition of one cell is public, so its share is not lost here, but is paid for.
    assert worst <= 1
    assert math.isclose(worst, 1.0)


@pytest.mark.parametrize("moved", [1, 2, 6])
def test_a_row_costs_the_same_in_a_cell_and_outside(moved: int) -> None:
    """Per row: the partition's shift, the bucket's count, the outside's count."""
    dawa = HilbertDawa(side=4, epsilon=Fraction(3, 7), moved=moved)
    partition = 4 * dawa.buckets.multiple / dawa.buckets.cost_scale
    bucket = dawa.buckets.bucket_epsilon / moved
    assert partition + bucket == dawa.epsilon / moved
    assert 1 / dawa.edge.scale == dawa.epsilon / moved
    assert price(dawa.event()) == Loss.pure(dawa.epsilon)


def test_cells_come_back_in_their_places() -> None:
    counts = np.zeros((8, 8), dtype=np.int64)
    counts[2, 5] = 5000
    dawa = HilbertDawa(side=8, epsilon=Fraction(20), moved=1)
    found = dawa.sample(Sealed(np.append(counts.ravel(), 70)))
    assert int(found.cells.argmax()) == 2 * 8 + 5
    assert found.cells[2 * 8 + 5] == pytest.approx(5000, abs=200)
    assert abs(found.outside - 70) < 20  # noise of scale 1/20


@pytest.mark.parametrize("side", [0, 3, 128])
def test_a_side_that_is_no_power_of_two_is_refused(side: int) -> None:
    with pytest.raises(ArgumentError, match="power of two"):
        HilbertDawa(side=side, epsilon=Fraction(1), moved=1)
