"""The Brier score at a horizon: sums brute-forced, weights and the score counted by hand."""

from typing import Any

import pytest
from tests.small_tables import SmallTables, protections

import heldout as ho
from heldout.errors import ArgumentError
from heldout.kernel import Protection
from heldout.questions.survival_brier import SurvivalErrors

KINDS = [
    (time, event, risk)
    for time, event in ((0.5, 1), (0.5, 0), (1.5, 1), (2.0, 0), (3.0, 0), (3.0, 1))
    for risk in (0.0, 0.25, 1.0)
]
TABLES = SmallTables(KINDS, ("time", "event", "value_0"), most=2)


@pytest.mark.parametrize("protection", protections(1, 2), ids=Protection.describe)
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    protection: Protection,
) -> None:
    statistic = SurvivalErrors(
        times=(1.0, 2.0), weights=(1.0, 1.5, 2.0), with_rest=not protection.row_count_is_public
    )
    largest = TABLES.distances(statistic)[TABLES.neighbours(protection)].max()
    assert largest <= statistic.sensitivity(protection), "the claim is too small: not private"
    assert largest == statistic.sensitivity(protection), "the claim is too large: noise for nothing"


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 11.0), (-1.0, 1.0), (0.0, 0.0)])
def test_weights_beyond_the_declared_largest_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(ArgumentError, match="weights"):
        SurvivalErrors(times=(1.0,), weights=weights)


# --- what the answer means -----------------------------------------------------------------------


def asked(rows: dict[str, Any], **options: Any) -> Any:
    dataset = ho.Dataset(rows, time="t", event="e", values={"r": (0, 1)}, **options)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1000))
    return session.survival_brier("r", 2, epsilon=1000, steps=2)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_where_no_row_is_lost_it_is_the_mean_squared_error(relation: str) -> None:
    rows = {"t": [1.0, 3.0] * 500, "e": [1, 0] * 500, "r": [0.5, 0.1] * 500}
    release = asked(rows, neighbours=relation)
    assert release.value == pytest.approx((0.25 + 0.01) / 2, abs=0.003)
    low, high = release.interval()
    assert low < 0.13 < high


def test_rows_that_live_on_stand_for_those_that_were_lost() -> None:
    # Half of the rows are lost in the second bin; all others live on with the error 1/4.
    rows = {"t": [1.5, 3.0] * 500, "e": [0, 0] * 500, "r": [0.0, 0.5] * 500}
    assert asked(rows).value == pytest.approx(0.25, abs=0.005)


def test_a_risk_must_be_a_share() -> None:
    rows = {"t": [1.0, 3.0], "e": [1, 0], "r": [0.5, 2.0]}
    dataset = ho.Dataset(rows, time="t", event="e", values={"r": (0, 2)})
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        session.survival_brier("r", 2, epsilon=1)
    assert session.remaining.epsilon == 1
