"""Sums of squares come free: with them a row moves all sums no further than without."""

from typing import Any

import duckdb
import numpy as np
import pytest

from heldout.data import sql
from heldout.kernel import Neighbours, Protection
from heldout.kernel.statistic import STEPS, BoundedSum
from heldout.questions.classes import CallCounts
from heldout.questions.counts import ThresholdCounts

REPLACED = Protection(neighbours=Neighbours.REPLACE_ONE)


def of_one_row(statistic: Any, **cells: float) -> Any:
    """The statistic of a table of one row, by its own statement."""
    row = ", ".join(f"{sql.double(each)} AS {name}" for name, each in cells.items())
    statement = sql.assemble(f"SELECT 1 AS label, 0 AS truth, 0 AS called, {row}", statistic.body())
    return statistic.read(duckdb.execute(statement).fetchnumpy())


@pytest.mark.parametrize("resolution", [1, 7, 16])
@pytest.mark.parametrize("with_rest", [False, True])
def test_an_error_of_any_size_moves_the_sums_no_further_than_claimed(
    resolution: int, with_rest: bool
) -> None:
    statistic = BoundedSum(
        error="absolute", score_range=(0, 1), with_rest=with_rest, resolution=resolution
    )
    sizes = np.arange(resolution + 1)
    found = np.array([of_one_row(statistic, score=1 - each / resolution) for each in sizes])
    assert found[:, 0].tolist() == sizes.tolist(), "every error there is"
    assert found[:, 1].tolist() == (sizes * (resolution - sizes) // resolution).tolist()
    apart = np.abs(found[:, None] - found[None]).sum(axis=2)
    assert apart.max() == statistic.sensitivity(REPLACED)
    assert found.min() >= 0
    assert found.sum(axis=1).max() == resolution


@pytest.mark.parametrize(
    "statistic",
    [
        ThresholdCounts(thresholds=(0.5,), weighted=True),
        CallCounts(classes=2, by_scores=False, weighted=True),
        BoundedSum(error="absolute", score_range=(0, 1), with_rest=True, weighted=True),
        BoundedSum(error="squared", score_range=(0, 1), with_rest=True, weighted=True),
    ],
    ids=lambda statistic: type(statistic).__name__,
)
def test_a_weight_of_any_size_adds_no_more_than_the_largest(statistic: Any) -> None:
    weights, scores = (0.0, 1e-7, 1 / 3, 0.5, 0.9, 1 - 1e-6, 1.0), (0.0, 0.3, 0.5, 0.99, 1.0)
    found = np.array(
        [of_one_row(statistic, score=p, weight=w) for w in weights for p in scores], dtype=np.int64
    )
    assert found.min() >= 0
    assert found.sum(axis=1).max() == STEPS, "a row of the largest weight, and no other, has it all"
    assert (found[: -len(scores)].sum(axis=1) <= STEPS).all()


def test_sums_of_squares_are_what_the_rows_have() -> None:
    """Of e - r w: the combination that intervals read, against the rows themselves."""
    from heldout.intervals.ratio import _squares

    generator = np.random.default_rng(3)
    weights, scores = generator.random(40), generator.random(40)
    statistic = BoundedSum(error="absolute", score_range=(0, 1), with_rest=True, weighted=True)
    sums = sum(
        of_one_row(statistic, score=p, weight=w) for w, p in zip(weights, scores, strict=True)
    )
    for ratio in (0.0, 0.3, 1.0):
        seen = _squares(np.array([1 - ratio, -ratio])) @ sums / STEPS
        error = weights * (1 - scores)
        assert seen == pytest.approx(((error - ratio * weights) ** 2).sum(), abs=1e-3)
