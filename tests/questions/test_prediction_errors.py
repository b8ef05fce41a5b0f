"""Two regressions row by row: sums brute-forced, and differences that one counts by hand."""

import itertools
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import heldout as ho
from heldout.data import sql
from heldout.errors import ArgumentError
from heldout.kernel import Neighbours, Protection
from heldout.questions.prediction_errors import ABSOLUTE, SQUARED, ErrorSums

ROWS = list(itertools.product((-1.0, 0.0, 0.4, 1.0, 7.0), (0.0, 0.7, 1.0), (0.0, 0.5, 1.0)))
PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 1), (True, 2))
]


def vectors(statistic: ErrorSums) -> Any:
    """The statistic of every row alone: it is a sum over rows."""
    connection = duckdb.connect()
    columns = {f"value_{place}": column for place, column in enumerate(zip(*ROWS, strict=True))}
    connection.register("rows", pa.table({"which": list(range(len(ROWS))), **columns}))
    rows = sql.assemble("SELECT * FROM rows WHERE rows.which = whole.which", statistic.body())
    answers = connection.execute(
        f"SELECT whole.which AS which, answer.* FROM range({len(ROWS)}) AS whole(which),"
        f" LATERAL ({rows}) AS answer ORDER BY 1"
    ).fetchnumpy()
    alone = (
        {name: column[at : at + 1] for name, column in answers.items()} for at in range(len(ROWS))
    )
    return np.array([statistic.read(columns) for columns in alone])


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda protection: protection.describe())
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    protection: Protection,
) -> None:
    rest = not protection.row_count_is_public
    for squared, error, most in itertools.product(
        (False, True), ("difference", "level"), (0.5, 1.0)
    ):
        statistic = ErrorSums(with_rest=rest, squared=squared, error=error, most=most)
        every = vectors(statistic)
        largest = 0
        for leave, arrive in protection.changes():
            moved = np.abs(arrive * every[:, None] - leave * every[None, :]).sum(axis=2)
            largest = max(largest, int(moved.max()))
        assert largest == statistic.sensitivity(protection)


PAY = [10.0, 20.0, 30.0, 40.0] * 250
OLD = [12.0, 26.0, 21.0, 40.0] * 250
NEW = [11.0, 19.0, 33.0, 42.0] * 250
VALUES = {"pay": (0, 50), "old": (0, 50), "new": (0, 50)}


def session(**options: Any) -> ho.Session:
    rows = {"pay": PAY, "old": OLD, "new": NEW}
    return ho.Session(ho.Dataset(rows, values=VALUES, **options), budget=ho.Budget(epsilon=10**7))


@pytest.mark.parametrize("options", [{}, {"neighbours": "add-remove"}])
@pytest.mark.parametrize(
    ("measure", "true"),
    [
        (ABSOLUTE, (1 + 1 + 3 + 2) / 4 - (2 + 6 + 9) / 4),
        (SQUARED, (15 / 4) ** 0.5 - (121 / 4) ** 0.5),
    ],
)
def test_with_much_budget_the_difference_is_the_one_that_one_counts(
    measure: str, true: float, options: dict[str, Any]
) -> None:
    words = {"observed": "pay", "first": "old", "second": "new"}
    found = session(**options).compare_errors(measure=measure, epsilon="100000", **words)
    assert found.value == pytest.approx(true, abs=0.01)
    low, high = found.interval(0.95)
    assert low < true < high < 0
    assert found.finding() == (
        f"new has a smaller {measure.replace('-', ' ')} than old, with 95% confidence."
    )
    assert found.p_value < 1e-6
    assert str(found.loss) == "epsilon 100000"


def test_larger_errors_than_declared_count_as_the_largest() -> None:
    found = session().compare_errors(
        observed="pay", first="old", second="new", measure=ABSOLUTE, largest_error=2.0,
        epsilon="100000",
    )  # fmt: skip
    assert found.value == pytest.approx((1 + 1 + 2 + 2) / 4 - (2 + 2 + 2) / 4, abs=0.001)


@pytest.mark.parametrize(
    "words",
    [
        {"largest_error": 0.0},
        {"largest_error": 51.0},
        {"largest_error": float("nan")},
        {"second": "newer"},
        {"measure": "r2"},
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_booked(words: Any) -> None:
    asked = session()
    with pytest.raises(ArgumentError):
        asked.compare_errors(
            **{"observed": "pay", "first": "old", "second": "new", "epsilon": "1"} | words
        )
    assert str(asked.remaining) == "epsilon 10000000"
