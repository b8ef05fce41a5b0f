"""Regression statistics give the same integers on every engine, and whole releases go through."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import heldout as ho
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.regression import Axis, GridCounts, PowerSums, RowCount
from heldout.kernel.statistic import compute
from heldout.regression import RegressionSession, RegressionTable

GENERATOR = np.random.default_rng(21)
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e300, -1e300, 0.25, 0.5, 1.0, 3.0, 4.0]
OBSERVED = np.concatenate([EXTREMES, GENERATOR.normal(size=300)])
ROWS = pa.table(
    {
        "y": OBSERVED,
        "p": np.where(np.abs(OBSERVED) > 1e200, 0.0, GENERATOR.normal(size=len(OBSERVED))),
        "who": [str(each // 3) for each in range(len(OBSERVED))],
        "visit": [str(each) for each in range(len(OBSERVED))],
    }
)
STATISTICS = [
    RowCount(),
    GridCounts(axes=(Axis("residual", (0.0, 0.5, 1.0, 2.0), absolute=True),)),
    GridCounts(axes=(Axis("residual", (-1.0, 0.0, 1.0)), Axis("predicted", (-2.0, 0.0, 2.0)))),
    PowerSums(column="residual", bounds=(0.0, 3.0), absolute=True, powers=3, with_rest=True),
    PowerSums(column="observed", bounds=(-1.5, 4.0), powers=2, with_rest=True),
    PowerSums(column="observed", bounds=(-1e149, 1e149), powers=3, with_rest=True),
]
DECLARED: list[dict[str, Any]] = [
    {"predicted": "p", "row_key": "visit"},
    {"coefficients": {"intercept": 0.1, "p": 0.7}, "row_key": "visit"},
    {"predicted": "p", "unit": "who", "rows_per_unit": 2, "row_key": "visit"},
]


@pytest.mark.parametrize("declared", DECLARED, ids=str)
def test_every_engine_counts_residuals_alike(engine: Any, declared: dict[str, Any]) -> None:
    ours = RegressionTable(ROWS, observed="y", **declared)
    theirs = RegressionTable(engine.hold(ROWS), observed="y", **declared)
    for statistic in STATISTICS:
        expected, found = (unseal(compute(statistic, each)) for each in (ours, theirs))
        assert found.tolist() == expected.tolist(), statistic


def test_a_plot_and_the_metrics_go_through_on_every_engine(engine: Any) -> None:
    table = RegressionTable(engine.hold(ROWS), observed="y", predicted="p", row_key="visit")
    session = RegressionSession(table, budget=ho.Budget(epsilon=2))
    assert session.residual_plot(epsilon=1).counts.sum() <= len(OBSERVED)
    assert session.metrics(epsilon=1).mae >= 0
