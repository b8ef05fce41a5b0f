"""The analyst's handle: what it refuses, that data never makes it fail, and threads at the door."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import heldout as ho
from heldout.errors import ArgumentError, BudgetExceeded, BudgetMismatch, HeldoutError, PrivacyError
from heldout.intervals.measure import Release

ROWS = {"y": [1, 0] * 20, "p": [0.75, 0.25] * 20}


def session(budget: Any = 3, **options: Any) -> ho.Session:
    dataset = ho.Dataset(ROWS, **({"label": "y", "score": "p"} | options))
    return ho.Session(dataset, budget=ho.Budget(epsilon=budget))


# --- refusals cost nothing -----------------------------------------------------------------------

BAD_REQUESTS: dict[str, Callable[[ho.Session], object]] = {
    "epsilon 0": lambda door: door.confusion(epsilon=0),
    "epsilon below 0": lambda door: door.brier(epsilon="-1"),
    "epsilon NaN": lambda door: door.brier(epsilon=math.nan),
    "epsilon infinite": lambda door: door.brier(epsilon=math.inf),
    "epsilon of text": lambda door: door.brier(epsilon="much"),
    "epsilon of no type": lambda door: door.brier(epsilon=None),  # type: ignore[arg-type]
    "epsilon true": lambda door: door.confusion(epsilon=True),
    "epsilon too small to draw": lambda door: door.brier(epsilon="1e-300"),
    "epsilon too long": lambda door: door.brier(epsilon="1e-399"),
    "threshold below": lambda door: door.confusion(threshold=-0.1, epsilon=1),
    "threshold above": lambda door: door.confusion(threshold=1.1, epsilon=1),
    "threshold NaN": lambda door: door.confusion(threshold=math.nan, epsilon=1),
    "threshold of text": lambda door: door.confusion(threshold="half", epsilon=1),  # type: ignore[arg-type]
    "threshold of no type": lambda door: door.confusion(threshold=None, epsilon=1),  # type: ignore[arg-type]
    "more than is left": lambda door: door.confusion(epsilon="3.000001"),
}


@pytest.mark.parametrize("ask", BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_a_refused_request_costs_nothing_and_leaves_no_entry(
    ask: Callable[[ho.Session], object],
) -> None:
    door = session()
    before = [entry.as_dict() for entry in door._ledger.history()]
    with pytest.raises((ArgumentError, BudgetExceeded)) as caught:
        ask(door)
    assert "\n" not in str(caught.value)
    assert door.remaining == ho.Loss.pure(3)
    assert [entry.as_dict() for entry in door._ledger.history()] == before


def test_a_request_is_refused_before_a_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    door = session(budget=1)

    def must_not_run(*_: object) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr(type(door._table), "_fetch", must_not_run)
    for ask in BAD_REQUESTS.values():
        with pytest.raises(HeldoutError):
            ask(door)


@pytest.mark.parametrize("level", [0, 1, -1, 2, math.nan, "wide", None])
def test_a_level_that_is_none_is_refused(level: Any) -> None:
    release = session().confusion(epsilon=1)
    for ask in (release.interval, release.noise_interval, release.as_dict):
        with pytest.raises(ArgumentError, match="level"):
            ask(level)


@pytest.mark.parametrize("beta", [0, -1, math.nan, math.inf, True])
def test_a_beta_that_is_none_is_refused(beta: Any) -> None:
    with pytest.raises(ArgumentError, match="beta"):
        session().confusion(epsilon=1).f_score(beta)


def test_a_session_wants_a_data_set_and_a_budget() -> None:
    with pytest.raises(ArgumentError, match="needs a Dataset"):
        ho.Session(ROWS, budget=ho.Budget(epsilon=1))  # type: ignore[arg-type]
    dataset = ho.Dataset(ROWS, label="y", score="p")
    with pytest.raises(ArgumentError, match="budget"):
        ho.Session(dataset)
    for bad in (0, -1, "nan", None):
        with pytest.raises(ArgumentError):
            ho.Session(dataset, budget=ho.Budget(epsilon=bad))


def test_brier_is_for_probabilities() -> None:
    door = session(score_range=(0, 2))
    with pytest.raises(ArgumentError, match="score_range"):
        door.brier(epsilon=1)
    assert door.remaining == ho.Loss.pure(3)
    assert 0 <= float(door.mean_squared_error(epsilon=1)) <= 4


def test_a_budget_that_speaks_of_rho_takes_a_pure_release() -> None:
    dataset = ho.Dataset(ROWS, label="y", score="p")
    door = ho.Session(dataset, budget=ho.Budget(rho="1/2"))
    release = door.confusion(epsilon="1/2")
    assert release.loss == ho.Loss.pure("1/2")
    assert door.spent == release.receipt.charge == ho.Loss.zcdp("1/8")


def test_rows_under_another_name_share_the_budget(tmp_path: Any) -> None:
    ledger = tmp_path / "ledger.sqlite"
    for name in ("first", "second"):
        dataset = ho.Dataset(ROWS, label="y", score="p", name=name)
        ho.Session(dataset, budget=ho.Budget(epsilon=1), ledger=ledger).brier(epsilon="1/2")
    again = ho.Session(ho.Dataset(ROWS, label="y", score="p"), ledger=ledger)
    assert again.remaining == ho.Loss.pure(0)
    with pytest.raises(BudgetMismatch):
        ho.Session(
            ho.Dataset(ROWS, label="y", score="p"), budget=ho.Budget(epsilon=9), ledger=ledger
        )


# --- nothing in valid data makes a release fail --------------------------------------------------

RELEASES: dict[str, Callable[[ho.Session, str], Release]] = {
    "confusion low": lambda door, epsilon: door.confusion(
        threshold=door.dataset.score_range[0], epsilon=epsilon
    ),
    "confusion high": lambda door, epsilon: door.confusion(
        threshold=door.dataset.score_range[1], epsilon=epsilon
    ),
    "absolute": lambda door, epsilon: door.mean_absolute_error(epsilon=epsilon),
    "squared": lambda door, epsilon: door.mean_squared_error(epsilon=epsilon),
}
RANKINGS: dict[str, Callable[[ho.Session, str], Release]] = {
    "auc": lambda door, epsilon: door.auc(epsilon=epsilon),
    "auc on the grid": lambda door, epsilon: door.auc(epsilon=epsilon, scores="grid"),
    "average precision": lambda door, epsilon: door.average_precision(epsilon=epsilon),
    "compare": lambda door, epsilon: door.compare(score="q", epsilon=epsilon),
}
awkward = st.sampled_from([0.0, -0.0, 5e-324, 0.5, float(np.nextafter(1, 0)), 1.0, 2.0**-1022])
ranges = st.sampled_from(
    [(0, 1), (-1, 1), (0, 1e-150), (-4e149, 4e149), (1e16, 1e16 + 4), (-1e-300, 1), (-3.5, -3.25)]
)


@given(
    rows=st.lists(st.tuples(st.integers(0, 1), awkward, st.integers(0, 2)), min_size=1, max_size=6),
    score_range=ranges,
    neighbours=st.sampled_from(["replace-one", "add-remove"]),
    unit=st.sampled_from([None, 1, 3]),
    epsilon=st.sampled_from(["0.00001", "1/3", "1", "1e6", "1e12"]),
)
@example([(1, 0.0, 0)], (0, 1), "replace-one", None, "1/3")
@example([(0, 1.0, 0)] * 5, (0, 1), "add-remove", 1, "1/3")
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_in_valid_data_makes_a_release_fail(
    rows: list[tuple[int, float, int]],
    score_range: tuple[float, float],
    neighbours: str,
    unit: int | None,
    epsilon: str,
) -> None:
    door = awkward_session(rows, score_range, neighbours, unit)
    for ask in RELEASES.values():
        check_is_whole(ask(door, epsilon))


@pytest.mark.parametrize("unit", [None, 3])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("ask", RANKINGS.values(), ids=RANKINGS)
def test_nothing_in_valid_data_makes_a_ranking_fail(
    ask: Callable[[ho.Session, str], Release], neighbours: str, unit: int | None
) -> None:
    for rows in (
        [(1, 0.0, 0)],
        [(0, 1.0, 1)] * 5,
        [(1, 5e-324, 0), (0, -0.0, 1), (0, 0.5, 2), (1, 0.5, 2)],
    ):
        for score_range in ((0, 1), (-4e149, 4e149), (0, 1e-150)):
            door = awkward_session(rows, score_range, neighbours, unit)
            check_is_whole(ask(door, "1/3"))


def awkward_session(
    rows: list[tuple[int, float, int]],
    score_range: tuple[float, float],
    neighbours: str,
    unit: int | None,
) -> ho.Session:
    low, high = score_range
    table = {
        "y": [label for label, _, _ in rows],
        "p": [min(max(low + share * (high - low), low), high) for _, share, _ in rows],
        "u": [who for _, _, who in rows],
        "q": [(share, -1e300, math.inf)[who] for _, share, who in rows],
    }
    declared: dict[str, Any] = {} if unit is None else {"unit": "u", "rows_per_unit": unit}
    dataset = ho.Dataset(
        table,
        label="y",
        score="p",
        rivals=["q"],
        out_of_range="clip",
        score_range=score_range,
        neighbours=neighbours,
        **declared,
    )
    return ho.Session(dataset, budget=ho.Budget(epsilon="1e201"))


def check_is_whole(release: Release) -> None:
    assert str(release)
    for measure in release.measures.values():
        assert math.isfinite(measure.value)
        for interval in (measure.interval(0.95), measure.noise_interval(0.5)):
            assert interval[0] <= measure.value <= interval[1]
            assert not any(math.isnan(bound) for bound in interval)


# --- threads and neighbours at the door ----------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file"])
def test_sixteen_threads_with_budget_for_five_get_exactly_five_answers(
    where: str, tmp_path: Any
) -> None:
    dataset = ho.Dataset(ROWS, label="y", score="p")
    ledger = None if where == "memory" else tmp_path / "ledger.sqlite"
    door = ho.Session(dataset, budget=ho.Budget(epsilon=1), ledger=ledger)
    start = threading.Barrier(16)

    def ask(_: int) -> Release | PrivacyError:
        start.wait()
        try:
            return door.confusion(epsilon="1/5")
        except PrivacyError as error:
            return error

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(16)))
    granted = [each for each in answers if isinstance(each, Release)]
    assert len(granted) == 5
    assert all(isinstance(each, BudgetExceeded | Release) for each in answers)
    assert {each.receipt.sequence for each in granted} == {2, 3, 4, 5, 6}
    assert door.remaining == ho.Loss.pure(0)
    assert len(door._ledger.entries(door._account)) == 5


def test_sessions_of_one_process_do_not_know_each_other() -> None:
    """Other rows, other budgets, other ledgers: nothing is shared."""
    tables = [{"y": [1, 0] * size, "p": [0.75, 0.25] * size} for size in range(1, 5)]
    doors = [
        ho.Session(ho.Dataset(each, label="y", score="p"), budget=ho.Budget(epsilon=size))
        for size, each in enumerate(tables, start=1)
    ]
    twin = ho.Session(ho.Dataset(tables[0], label="y", score="p"), budget=ho.Budget(epsilon=1))

    def spend(door: ho.Session) -> Fraction | None:
        for _ in range(4):
            door.brier(epsilon="1/4")
        return door.remaining.epsilon

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(spend, doors)) == [0, 1, 2, 3]
    assert twin.remaining == ho.Loss.pure(1), "a ledger in memory is one session's"


def test_a_session_shows_no_exact_number() -> None:
    door = session(neighbours="add-remove")
    shown = f"{door!r} {door} {door.dataset!r} {door.budget} {door.remaining}"
    assert "40" not in shown
    assert "20" not in shown
    assert 40 not in [each for each in vars(door.dataset).values() if isinstance(each, int)]


def test_a_session_does_not_pay_for_other_rows() -> None:
    mine = session(budget=1)
    other = ho.Dataset(ROWS, label="y", score="p")
    with pytest.raises(ArgumentError, match="budget of their own"):
        mine.viewing(other)
    assert mine.spent == ho.Loss.pure(0)


def test_neither_the_rows_nor_their_protection_can_be_exchanged_under_a_session() -> None:
    """Noise for other neighbours would be too small for the account's own."""
    mine = session(budget=1)
    with pytest.raises(AttributeError):
        mine.dataset = ho.Dataset(ROWS, label="y", score="p", neighbours="add-remove")  # type: ignore[misc]
    with pytest.raises(AttributeError):
        mine.dataset.protection = ho.Dataset(  # type: ignore[misc]
            ROWS, label="y", score="p", neighbours="add-remove"
        ).protection


def test_a_session_tells_what_was_paid_and_reads_well(tmp_path: Path) -> None:
    rows = ho.Dataset({"y": [1, 0] * 300, "p": [0.8, 0.3] * 300}, label="y", score="p")
    session = ho.Session(rows, budget=ho.Budget(3), ledger=ho.Ledger(tmp_path / "ledger.sqlite"))
    assert session.history() == []
    cells = session.confusion(epsilon="1/2")
    [booking] = session.history()
    assert (booking.asked, booking.model, booking.receipt) == ("confusion", "p", cells.receipt.hash)
    assert "confusion of p, epsilon 0.5" in repr(booking)
    assert repr(session.remaining) == "Loss(epsilon='5/2')"
    assert eval("ho." + repr(session.budget)) == ho.Budget(epsilon="3")
