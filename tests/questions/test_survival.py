"""Time to an event: counts brute-forced, curves counted by hand, tests that find differences."""

from typing import Any

import numpy as np
import pytest
from tests.small_tables import SmallTables, protections

import heldout as ho
from heldout import questions as q
from heldout.errors import ArgumentError
from heldout.intervals.ratio import NoisyCounts
from heldout.intervals.survival import SurvivalCurve, simultaneous_level
from heldout.kernel import Protection
from heldout.questions.survival import SurvivalCounts

KINDS = [
    (time, event, value, member)
    for time, event in ((0.0, 1), (1.0, 0), (1.0, 1), (2.0, 1), (3.0, 0), (3.0, 1))
    for value, member in ((0.25, 0), (0.5, 1))
]
TABLES = SmallTables(KINDS, ("time", "event", "value_0", "member"))
STATISTICS = [
    SurvivalCounts(times=(1.0, 2.0)),
    SurvivalCounts(times=(2.0,), edges=(0.5,)),
    SurvivalCounts(times=(1.0,), edges=(0.5,), groups=2),
]


@pytest.fixture(scope="module")
def vectors() -> dict[SurvivalCounts, Any]:
    return {statistic: np.array(TABLES.answers(statistic)) for statistic in STATISTICS}


@pytest.mark.parametrize("protection", protections(1, 2), ids=Protection.describe)
@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    vectors: dict[SurvivalCounts, Any], statistic: SurvivalCounts, protection: Protection
) -> None:
    values = vectors[statistic]
    distances = np.abs(values[:, None, :] - values[None, :, :]).sum(axis=2)
    largest = distances[TABLES.neighbours(protection)].max()
    assert largest <= statistic.sensitivity(protection), "the claim is too small: not private"
    assert largest == statistic.sensitivity(protection), "the claim is too large: noise for nothing"


def test_every_row_is_counted_once(vectors: dict[SurvivalCounts, Any]) -> None:
    for values in vectors.values():
        assert values.sum(axis=1).tolist() == TABLES.content.sum(axis=1).tolist()


# --- what answers mean ---------------------------------------------------------------------------

ROWS = {
    # Of ten, two die by day 1 and one is lost on it; two of the seven left die by day 2.
    "t": [0.5, 1.0, 1.0, 2.0, 1.5, 3, 3, 4, 5, 6] * 100,
    "e": [1, 1, 0, 1, 1, 0, 1, 0, 1, 0] * 100,
    "p": [0.9, 0.8, 0.1, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1] * 100,
    "g": ["a"] * 500 + ["b"] * 500,
}


def session(neighbours: str = "replace-one", **options: Any) -> ho.Session:
    dataset = ho.Dataset(
        ROWS,
        time="t",
        event="e",
        values={"p": (0, 1)},
        groups={"g": ["a", "b"]},
        neighbours=neighbours,
        **options,
    )
    return ho.Session(dataset, budget=ho.Budget(epsilon=2000))


def constant_hazards(reach: float, events: float, censored: float) -> float:
    gone = events + censored
    return float((1 - gone / reach) ** (events / gone))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_curve_is_what_one_counts_by_hand(relation: str) -> None:
    release = session(relation).kaplan_meier([1, 2], epsilon=500)
    first = constant_hazards(1000, 200, 100)
    second = first * constant_hazards(700, 200, 0)
    assert release.at(1).value == pytest.approx(first, abs=0.003)
    assert release.at(2).value == pytest.approx(second, abs=0.003)
    for time, value in ((1, first), (2, second)):
        low, high = release.at(time).noise_interval()
        assert low - 0.003 <= value <= high + 0.003
        wide = release.at(time).interval()
        assert wide[0] < low
        assert high < wide[1]
    with pytest.raises(ArgumentError, match="one of the times in the grid"):
        release.at(1.5)


def test_the_band_is_wider_than_intervals_and_the_median_lies_in_its_own() -> None:
    release = session().kaplan_meier([0.5, 1, 1.5, 2, 3, 4], epsilon=500)
    low, high = release.band()
    for place, time in enumerate(release.shown):
        first, last = release.at(time).interval()
        assert low[place] <= first + 1e-9
        assert last <= high[place] + 1e-9
    assert (np.diff(low) <= 0).all()
    assert (np.diff(high) <= 0).all()
    median = release.quantile(0.5)
    assert median.interval()[0] <= median.value <= median.interval()[1]
    assert "Share that lives on" in release._repr_html_()


def test_times_with_few_rows_left_are_not_shown_and_their_interval_reaches_down_to_zero() -> None:
    release = session().kaplan_meier([1, 2, 5.5, 100], epsilon="1/2")
    assert 100 not in release.shown
    late = release.at(100)
    assert not late.informative
    assert late.interval()[0] == 0
    assert late.interval()[1] <= release.at(release.shown[-1]).interval()[1]


def test_the_log_rank_test_compares_declared_groups() -> None:
    same = session().log_rank([1, 2, 3], "g", epsilon=500)
    assert same.p_value > 0.5
    assert same.value == pytest.approx(1, abs=0.05)
    rows = {**ROWS, "t": [*ROWS["t"][:500], *(3 * t for t in ROWS["t"][500:])]}
    dataset = ho.Dataset(rows, time="t", event="e", groups={"g": ["a", "b"]})
    release = ho.Session(dataset, budget=ho.Budget(epsilon=500)).log_rank(
        [1, 2, 3], "g", epsilon=500
    )
    assert release.p_value < 1e-6
    assert release.value < 0.5
    assert release.as_dict()["p_value"] == release.p_value
    assert "do not come alike" in release.finding()


def test_groups_to_compare_must_be_declared() -> None:
    one = ho.Dataset(ROWS, time="t", event="e", groups={"g": ["a"]})
    with pytest.raises(ArgumentError, match="two declared groups"):
        ho.Session(one, budget=ho.Budget(epsilon=1)).log_rank([1], "g", epsilon=1)
    none = ho.Dataset(ROWS, time="t", event="e")
    with pytest.raises(ArgumentError, match="no groups are declared"):
        ho.Session(none, budget=ho.Budget(epsilon=1)).log_rank([1], "g", epsilon=1)


def test_calibration_is_the_observed_share_by_predicted_risk() -> None:
    release = session().survival_calibration("p", 2, epsilon=500, bins=2, steps=1)
    low, high = release.measures.values()
    # Below one half: the row lost on day 1, and four that live on past day 2.
    assert low.value == pytest.approx(0, abs=0.01)
    assert high.value == pytest.approx(1 - (1 / 5), abs=0.01)
    assert "Observed risk" in release._repr_html_()


def test_curves_of_several_sites_are_pooled() -> None:
    question = q.KaplanMeier(epsilon=200, grid=[1, 2])
    sites = []
    for start in range(2):
        part = {name: column[start::2] for name, column in ROWS.items()}
        dataset = ho.Dataset(part, time="t", event="e", name=f"site {start}")
        sites.append(ho.Session(dataset, budget=ho.Budget(epsilon=200)).ask(question))
    pooled = ho.pool(sites)
    assert pooled.value == pytest.approx(constant_hazards(1000, 200, 100), abs=0.01)


def test_by_group_each_group_has_its_own_curve() -> None:
    release = session().kaplan_meier([1, 2], epsilon=500, by="g")
    for group in ("a", "b"):
        value = release.groups[group].value
        assert value == pytest.approx(constant_hazards(1000, 200, 100), abs=0.01)


@pytest.mark.parametrize("grid", [[0], [-1, 1], [], ["x"], list(range(1, 502))])
def test_a_grid_of_times_is_checked_before_anything_is_booked(grid: list[Any]) -> None:
    door = session()
    with pytest.raises(ArgumentError):
        door.kaplan_meier(grid, epsilon=1)
    assert door.remaining.epsilon == 2000


# --- intervals -----------------------------------------------------------------------------------


def exact_curve(cells: list[float]) -> SurvivalCurve:
    size = len(cells)
    return SurvivalCurve(NoisyCounts(estimate=np.array(cells), spread=np.eye(size), scale=1e-9))


def test_without_censoring_the_interval_is_that_of_a_share() -> None:
    curve = exact_curve([0, 300, 0, 0, 700])
    low, high = curve.interval(1, 0.95)
    # Wilson's for 700 of 1,000 rows.
    assert low == pytest.approx(0.671, abs=0.002)
    assert high == pytest.approx(0.728, abs=0.002)


def test_lost_rows_leave_the_curve_alone_and_widen_the_interval() -> None:
    with_lost = exact_curve([100, 0, 0, 90, 810])
    assert with_lost.shares[1] == pytest.approx(0.9)
    all_seen = exact_curve([0, 0, 0, 100, 900])
    widths = [np.diff(curve.interval(1, 0.95))[0] for curve in (with_lost, all_seen)]
    assert widths[0] > widths[1]


def test_levels_that_hold_together_lie_between_one_and_bonferroni() -> None:
    independent = simultaneous_level(np.zeros(9), 0.95)
    assert independent == pytest.approx(0.95**0.1, abs=1e-4)
    together = simultaneous_level(np.full(9, 0.9), 0.95)
    assert 0.95 < together < independent
