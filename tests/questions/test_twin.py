"""Twins: tables and scores brute-forced, and made-up rows that look like the private ones."""

import csv
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.data.description import ValueRange
from heldout.errors import ArgumentError
from heldout.kernel import Neighbours, Protection, price
from heldout.questions.twin import Cells, LinkScores, Tables, drawn_to, nearest_table

COLUMNS = tuple(
    Cells.of(name, at, ValueRange(0.0, 1.0), bins, whole=False)
    for at, (name, bins) in enumerate([("a", 2), ("b", 3), ("c", 2)])
)
ONES = Tables(COLUMNS, ((0,), (1,), (2,)))
PAIRS = Tables(COLUMNS, ((0, 1), (1, 2)))
SCORES = LinkScores(COLUMNS, ((0, 1), (0, 2)), ((1, 0, 2, 1, 1, 0), (2, 0, 1, 1)))
PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 1), (True, 2))
]
KINDS = list(itertools.product(range(2), range(3), range(2)))
OTHERS = [(0, 0, 0), (1, 2, 1), (1, 1, 0), (0, 2, 1)]


def vector(statistic: Any, rows: list[tuple[int, ...]]) -> Any:
    cells = np.array(rows, dtype=np.int64).reshape(-1, 3)
    columns = {f"c_{at}": cells[:, at] for at in range(3)}
    return statistic.read({**columns, "n": np.ones(len(cells), dtype=np.int64)})


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
@pytest.mark.parametrize("statistic", [ONES, PAIRS, SCORES], ids=["ones", "pairs", "LinkScores"])
def test_no_neighbours_move_tables_and_scores_further_than_claimed_and_some_do_as_far(
    statistic: Any, protection: Protection
) -> None:
    largest = 0
    for leave, arrive in protection.changes():
        for gone in itertools.combinations_with_replacement(KINDS, leave):
            before = vector(statistic, [*OTHERS, *gone])
            for come in itertools.combinations_with_replacement(KINDS, arrive):
                moved = np.abs(before - vector(statistic, [*OTHERS, *come]))
                own = moved.max() if statistic is SCORES else moved.sum()
                largest = max(largest, int(own))
    assert largest == statistic.sensitivity(protection)


RANDOM = np.random.default_rng(9)


def people(count: int = 3000) -> dict[str, Any]:
    age = RANDOM.integers(18, 66, count)
    sex = np.where(RANDOM.random(count) < 0.3, "F", "M")
    pay = np.clip(15_000 + 800 * age - 9000 * (sex == "F") + RANDOM.normal(0, 5000, count), 0, 9e4)
    return {"age": age, "sex": sex, "pay": pay, "luck": RANDOM.random(count)}


VALUES: dict[str, Any] = {
    "age": (18, 65),
    "sex": {"M": 0, "F": 1},
    "pay": (0, 90_000),
    "luck": (0, 1),
}


def session(rows: Any, **options: Any) -> ho.Session:
    return ho.Session(ho.Dataset(rows, values=VALUES, **options), budget=ho.Budget(epsilon=10**5))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_at_a_high_price_a_twin_has_the_tables_of_its_rows(relation: str) -> None:
    rows = people()
    twin = session(rows, neighbours=relation).private_twin(epsilon=1000, whole=["age"])
    made = twin.rows()
    assert len(made["age"]) == pytest.approx(3000, abs=3)
    assert all(isinstance(age, int) and 18 <= age <= 65 for age in made["age"])
    assert set(made["sex"]) == {"F", "M"}
    assert np.mean(made["age"]) == pytest.approx(rows["age"].mean(), abs=1)
    assert np.mean(np.array(made["sex"]) == "F") == pytest.approx(0.3, abs=0.03)
    assert np.corrcoef(made["age"], made["pay"])[0, 1] > 0.8
    assert abs(np.corrcoef(made["luck"], made["pay"])[0, 1]) < 0.1
    assert {frozenset(link) for link in twin.links} >= {frozenset(("age", "pay"))}
    assert len(twin.links) == 3
    assert twin.rows() == made, "the same rows each time"
    again = list(csv.reader(twin.to_csv(5).splitlines()))
    assert again[0] == list(VALUES)
    assert len(again) == 6
    assert any("three columns" in sentence for sentence in twin.answers_badly)
    assert twin.as_dict()["links"] == [list(link) for link in twin.links]


@pytest.mark.parametrize("unit", [{}, {"unit": "who", "rows_per_unit": 2}])
def test_the_ledger_takes_exactly_epsilon_for_a_twin(unit: dict[str, Any]) -> None:
    rows = {**people(200), "who": np.arange(200) // 2}
    door = session(rows, **unit)
    release = door.private_twin(epsilon="1/3")
    assert price(release._drawn.request.event()) == ho.Loss.pure(Fraction(1, 3))
    assert door.spent == ho.Loss.pure(Fraction(1, 3))
    assert len(release.rows(7)["pay"]) == 7


def test_whole_numbers_have_bins_of_whole_numbers() -> None:
    flag = Cells.of("flag", 0, ValueRange(0.0, 1.0), 10, whole=True)
    assert flag.size == 2
    assert [flag.value(cell, 0.99) for cell in range(2)] == [0, 1]
    ages = Cells.of("age", 0, ValueRange(18.0, 65.0), 10, whole=True)
    assert ages.size == 10
    values = [ages.value(cell, share) for cell in range(10) for share in (0.0, 0.5, 0.999)]
    assert min(values) == 18
    assert max(values) == 65


def test_what_cannot_be_made_is_refused_before_it_is_paid() -> None:
    door = session(people(50))
    with pytest.raises(ArgumentError, match="No column"):
        door.private_twin(epsilon=1, whole=["height"])
    one = ho.Session(ho.Dataset({"a": [0.1]}, values={"a": (0, 1)}), budget=ho.Budget(epsilon=1))
    with pytest.raises(ArgumentError, match="2 to 30 declared columns"):
        one.ask(q.PrivateTwin(epsilon=1))
    assert door.spent == ho.Loss.pure(0)


def test_empty_cells_of_a_sparse_table_stay_empty_and_the_others_come_nearer() -> None:
    """Noise on every cell fills them: the paper on separability asks for what keeps them."""
    random = np.random.default_rng(3)
    rates = 2000.0 / np.outer(np.arange(1, 61), np.arange(1, 41)) ** 1.5
    counts = random.poisson(rates * random.gamma(2, 0.5, rates.shape)).astype(float)
    noisy = counts + random.laplace(0, 2, rates.shape)
    total = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    table = nearest_table(drawn_to(expected, noisy, variance=8.0), total)
    assert table.sum() == pytest.approx(total)
    assert table.min() >= 0
    drawn = random.poisson(table)
    clipped = np.maximum(np.rint(noisy), 0)
    empty = (counts == 0).mean()
    assert abs((drawn == 0).mean() - empty) < 0.05 < abs((clipped == 0).mean() - empty) / 3
    assert np.abs(table - counts).mean() < 0.6 * np.abs(clipped - counts).mean()
    assert np.allclose(drawn_to(expected, noisy, variance=1e-9), noisy)
    assert np.allclose(drawn_to(expected, expected, variance=8.0), expected)
